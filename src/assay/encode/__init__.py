"""Raw samples, such as strings, as rows of numbers: what comes before counting."""
