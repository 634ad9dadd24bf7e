"""Search in Python's documentation: retrieval

Topics of `help()` as queries and their paragraphs as documents, ranked by TF-IDF. A paragraph is relevant for its own
topic.

- One number a query, so the report has an interval over queries.
- *Worst queries* shows the five searches that went wrong, with the paragraphs that came first.
"""

import random
from pydoc_data.topics import topics

import pyarrow as pa
from sklearn.feature_extraction.text import TfidfVectorizer

import assay

names = sorted(topics)[::2]
paragraphs = {each: [" ".join(p.split()) for p in topics[each].split("\n\n") if len(p) > 60][:6] for each in names}
documents = [(topic, text) for topic, several in paragraphs.items() for text in several]
vectors = TfidfVectorizer(stop_words="english")
matrix = vectors.fit_transform([text for _, text in documents])
rng, rows = random.Random(0), []
for query in names:
    own = [k for k, (topic, _) in enumerate(documents) if topic == query]
    others = rng.sample([k for k in range(len(documents)) if k not in own], 30)
    scores = (matrix[own + others] @ vectors.transform([query.replace("-", " ")]).T).toarray()[:, 0]
    rows += [
        {"query": query, "score": float(s), "relevant": int(k in own), "text": documents[k][1]}
        for k, s in zip(own + others, scores, strict=True)
    ]
report = assay.score(
    pa.Table.from_pylist(rows),
    "ndcg:top_k=10,mrr,map",
    preds="score",
    target="relevant",
    columns={"indexes": "query"},
    show="text",
    progress=False,
    title="Search in Python's documentation",
)
