"""
Learning to rank from clicks
============================

A search page shows results in some order; users skip some and click others. Each click below a skipped result means "this
result is more similar to the query than that one", which is a triplet. No labels are needed.
"""

# %%
# Queries, documents and clicks
# -----------------------------
# Simulated data: ten subjects. Queries and documents on the same subject often use different words for it, so matching
# words is not enough. The page shows ten results, and users click the first one on their subject.

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL

rng = np.random.default_rng(2)
n_subjects, n_words = 10, 5000
query_words = rng.permutation(n_words)[: 4 * n_subjects].reshape(n_subjects, 4)
document_words = rng.permutation(n_words)[: 4 * n_subjects].reshape(n_subjects, 4)


def texts(subjects, subject_words, n_noise):
    rows, columns = [], []
    for row, subject in enumerate(subjects):
        words = [*rng.choice(subject_words[subject], 2, replace=False), *rng.integers(0, n_words, n_noise)]
        rows += [row] * len(words)
        columns += words
    X = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(subjects), n_words))
    X.data[:] = 1
    return X


query_subjects, document_subjects = rng.integers(0, n_subjects, 400), rng.integers(0, n_subjects, 1000)
queries, documents = texts(query_subjects, query_words, 1), texts(document_subjects, document_words, 20)
X = sp.vstack([queries, documents], format="csr")  # one matrix, whose rows the triplets refer to

log = []
for query in np.repeat(np.arange(300), 4):  # four pages each; the last 100 queries are for testing
    page = rng.choice(documents.shape[0], 10, replace=False)
    clicked = next((d for d in page if document_subjects[d] == query_subjects[query]), None)
    if clicked is None or rng.random() < 0.1:
        clicked = page[-1]  # no result on the subject, or an accidental click
    skipped = page[: list(page).index(clicked)]
    log += [(query, 400 + clicked, 400 + other) for other in skipped]
triplets = np.array(log)
print(f"{len(triplets)} triplets from {len(np.unique(triplets[:, 0]))} queries, for example {triplets[0]}")

# %%
# Learning
# --------
# Random folds of triplets would test on queries that were trained on. `AnchorKFold` keeps all triplets of a query in one
# fold. The score is the triplet accuracy: the fraction of triplets that the similarity agrees with, where a tie counts one
# half, so that guessing has 50%. A sparse similarity has many ties: documents without any of its words.

from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from hdsl import TripletHDSL
from hdsl.model_selection import AnchorKFold

learner = TripletHDSL(preprocessor=X, preprocess="unit", max_iter=300)
search = GridSearchCV(learner, {"scale": [10, 100, 1000]}, cv=AnchorKFold(3)).fit(triplets)
print(f"lambda {search.best_params_['scale']}: triplet accuracy {search.best_score_:.1%} on the clicks of new queries")
leaky = cross_val_score(search.best_estimator_, triplets, cv=KFold(3, shuffle=True, random_state=0)).mean()
print(f"with random folds the estimate would be {leaky:.1%}")

# %%
# Ranking
# -------
# For queries without clicks: the fraction of the ten best documents that are on the subject.

best = HDSL(scale=search.best_params_["scale"], preprocess="unit", max_iter=300).fit_triplets(X, triplets)
test = np.arange(300, 400)


def precision(scores):
    top = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return (document_subjects[top] == query_subjects[test][:, None]).mean()


words = (queries[test] @ documents.T).toarray()
learned = best.similarity(queries[test], documents)
print(f"matching words {precision(words):.1%}, learned {precision(learned):.1%}")

# %%
# Online learning
# ---------------
# A day later there are more clicks. `partial_fit_triplets` continues from the present similarity.

fresh = []
for query in test[:50]:
    on, off = (np.flatnonzero((document_subjects == query_subjects[query]) == wanted) for wanted in (True, False))
    fresh += [(query, 400 + rng.choice(on), 400 + other) for other in rng.choice(off, 3)]
best.partial_fit_triplets(X, fresh, max_iter=50)
after = best.similarity(queries[test], documents)
print(f"after 50 more queries {precision(after):.1%}")

# %%
# The share of results on the subject, by the number of results that are looked at:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(layout="constrained")
for name, scores in [("matching words", words), ("learned from clicks", learned), ("after 50 more queries", after)]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :50]
    hits = document_subjects[order] == query_subjects[test][:, None]
    ax.plot(np.arange(1, 51), hits.mean(axis=0).cumsum() / np.arange(1, 51), label=name)
ax.set(xlabel="results", ylabel="share on the subject", ylim=(0, 1))
ax.legend()
