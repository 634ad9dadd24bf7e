"""Models whose parts lie on several processes: which processes need the same samples, and which call it as often."""
