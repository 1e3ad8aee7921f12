import bz2
import re

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from hdsl import HDSL, metrics


def smart(file):
    """The texts of a SMART file."""
    with bz2.open(f"data/cranfield/{file}.bz2", "rt", encoding="latin-1") as lines:
        records = re.split(r"^\.I .*$", lines.read(), flags=re.MULTILINE)[1:]
    return [record.split(".W\n", 1)[1] for record in records]


documents, questions = smart("cran.all.1400"), smart("cran.qry")
with bz2.open("data/cranfield/cranqrel.bz2", "rt") as lines:
    answers = {tuple(int(word) - 1 for word in line.split()[:2]) for line in lines}

# One matrix: questions first, then documents.
X = CountVectorizer(stop_words="english", min_df=2).fit_transform(questions + documents)
n_questions = len(questions)

# A page of ten results by tf-idf cosine, in random order. A user reads from the top, skips wrong
# results, and clicks the first answer: it is preferred to every result above it.
base = HDSL(scale=1, base=1, preprocess="tfidf", max_iter=1)
base.fit_triplets(X, [[0, n_questions, n_questions + 1]])
start = base.preprocess_rows(X)
cosine = (start[:n_questions] @ start[n_questions:].T).toarray()
rng = np.random.default_rng(0)
triplets = []
train = np.arange(n_questions) % 3 != 0
for question in np.flatnonzero(train):
    best = np.argsort(-cosine[question], kind="stable")[:30]
    for _ in range(20):
        page = rng.choice(best, 10, replace=False)
        clicked = next((n for n, d in enumerate(page) if (question, d) in answers), 0)
        triplets += [(question, n_questions + page[clicked], n_questions + d) for d in page[:clicked]]
triplets = np.array(triplets)
print(f"{len(triplets):,} triplets from {20 * train.sum():,} pages of {train.sum()} questions")

# Learn on top of the cosine; a part of the questions is held out to choose lambda.
learner = HDSL(
    scale=[10, 30, 100, 300], base="auto", preprocess="tfidf", max_iter=300,
    early_stopping=True, validation_fraction=0.2, n_iter_no_change=100,
).fit_triplets(X, triplets)  # fmt: skip
print(f"lambda {learner.scale_:g}, base {learner.base_:.3g}, {learner.n_active_features_} words in M")

# Questions without clicks: rank all documents, and compare with the judgments.
test = np.flatnonzero(~train)
relevant = np.array([[(q, d) in answers for d in range(len(documents))] for q in test], dtype=float)
learned = learner.similarity(X[test], X[n_questions:])
for name, scores in [("tf-idf cosine", cosine[test]), ("learned from clicks", learned)]:
    ndcg = metrics.ndcg_score(
        relevant.ravel(), scores.ravel(), qid=np.repeat(test, len(documents)), k=10
    )
    print(f"{name}: nDCG@10 {ndcg:.3f}")
