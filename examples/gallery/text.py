"""Typing errors: text

Sentences of Python's own documentation with typing errors, corrected word by word by `difflib`. Measured like a speech
recognizer: errors of words and characters.

- Worst errors show the sentences with their corrections.
- Slices by the number of errors say where the corrector stops helping.
"""

import difflib
import random
import re
from pydoc_data.topics import topics

from torch.utils.data import DataLoader

from assay import evaluate

rng = random.Random(0)
text = " ".join(" ".join(topics.values()).split())
sentences = re.findall(r"(?<=[.] )[A-Z][a-zA-Z ,'-]{40,110}[.](?= [A-Z])", text)[:200]
words = sorted({word for each in topics.values() for word in re.findall(r"[a-zA-Z']+", each)})
known = {*words}


def mistype(sentence):
    """Swap two letters of some words."""
    typed = []
    for word in sentence.split(" "):
        k = rng.randrange(max(len(word) - 1, 1))
        wrong = len(word) > 3 and rng.random() < 0.15
        typed.append(word[:k] + word[k + 1 : k + 2] + word[k : k + 1] + word[k + 2 :] if wrong else word)
    return " ".join(typed)


def correct(sentences):
    def word(match):
        near = difflib.get_close_matches(match[0], words, 1, 0.75) if match[0] not in known else [match[0]]
        return near[0] if near else match[0]

    return [re.sub(r"[a-zA-Z']+", word, each) for each in sentences]


samples = [{"typed": mistype(each), "meant": each} for each in sentences]
for each in samples:
    wrong = sum(a != b for a, b in zip(each["typed"].split(), each["meant"].split(), strict=True))
    each["errors"] = min(wrong, 3)
report = evaluate(
    correct,
    DataLoader(samples, batch_size=50),
    "wer,cer,chrf",
    inputs="typed",
    target="meant",
    slices="errors",
    device="cpu",
    progress=False,
    title="Corrected typing errors",
)
