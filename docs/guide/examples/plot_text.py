"""
Text: which words make two reviews similar
==========================================

Reviews as bags of words have thousands of columns, of which a review has some dozens and of which few are relevant. The
similarity learned here uses a handful of words, relates words of the same meaning although no review contains both, and
explains its scores in words.
"""

# %%
# Reviews
# -------
# Simulated data: each has one word on the food, one on the staff, and twelve random words. The class is whether food and
# staff are good, so there are four classes.

import numpy as np

from hdsl import HDSLClassifier, plot

rng = np.random.default_rng(0)
food = {"good": ["delicious", "tasty", "savoury"], "bad": ["stale", "soggy", "bland"]}
staff = {"good": ["friendly", "attentive", "polite"], "bad": ["surly", "careless", "slow"]}
filler = ["".join(rng.choice(list("aeioubdfgklmnprst"), 5)) for _ in range(2000)]


def reviews(n):
    texts, classes = [], []
    for _ in range(n):
        how = rng.choice(["good", "bad"], 2)
        words = [rng.choice(food[how[0]]), rng.choice(staff[how[1]]), *rng.choice(filler, 12)]
        rng.shuffle(words)
        texts.append(" ".join(words))
        classes.append(f"{how[0]} food, {how[1]} staff")
    return texts, classes


texts, y = reviews(600)
test_texts, test_y = reviews(400)
print(texts[0], "->", y[0])

# %%
# Learning
# --------
# The classifier follows a vectorizer in a pipeline and gets a sparse matrix, which is never made dense.

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

model = make_pipeline(CountVectorizer(binary=True), HDSLClassifier(scale=10, max_iter=60, triplets="random:20"))
model.fit(texts, y)
print(f"{1 - model.score(test_texts, test_y):.1%} of new reviews are misclassified")

# %%
# Without learning, the irrelevant words dominate:

from sklearn.neighbors import KNeighborsClassifier

plain = make_pipeline(CountVectorizer(binary=True), KNeighborsClassifier(3, metric="cosine")).fit(texts, y)
print(f"{1 - plain.score(test_texts, test_y):.1%} with cosine similarity")

# %%
# The learned similarity
# ----------------------
# Pairs of words with a positive weight make two reviews more similar, those with a negative weight less similar. The words are
# those of the vectorizer.

learner = model[-1]
print(f"{learner.n_active_features_} of {learner.n_features_in_} words are in use")
learner.explain().pairs.head(10)

# %%
# The matrix of the similarity, restricted to the words in use:

ax = plot.matrix(learner.at(n_features=16), names=True)
ax.figure.set_size_inches(7, 6)

# %%
# Explaining a score
# ------------------
# Two reviews of one class without a common relevant word. The contributions sum to the score.

matter = set().union(*food.values(), *staff.values())
X = model[:-1].transform(texts)
first = 0
second = next(
    row
    for row in range(1, len(texts))
    if y[row] == y[first] and not matter & set(texts[row].split()) & set(texts[first].split())
)
print(texts[first], "\n", texts[second])
print("score", learner.score_pairs(X, first, second)[0])
learner.explain_pair(X[first], X[second])
