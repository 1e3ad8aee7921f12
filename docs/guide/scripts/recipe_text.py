import bz2

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from hdsl import HDSLClassifier


def read(part):
    with bz2.open(f"data/r8_text/{part}.tsv.bz2", "rt", encoding="utf-8") as lines:
        return zip(*(line.rstrip("\n").split("\t", 1) for line in lines))


topics, texts = read("train")
test_topics, test_texts = read("test")
print(f"{len(texts):,} news stories of {len(set(topics))} topics, {len(test_texts):,} for testing")

# Everything is chosen from the data: preprocessing, base, lambda, number of iterations.
model = make_pipeline(CountVectorizer(min_df=2), HDSLClassifier()).fit(texts, topics)
learner = model[-1]
print(f"error {1 - model.score(test_texts, test_topics):.1%}")

# Words of different stories that make them more (+) or less (-) similar.
pairs = learner.explain().pairs
for name, sign in [("more similar", 1), ("less similar", -1)]:
    some = pairs[sign * pairs["weight"] > 0].head(4)
    print(f"{name}:", ", ".join(f"{one} and {other}" for one, other in zip(some["feature_i"], some["feature_j"])))

# A story and the most similar one of the training part, with the reasons.
X, X_test = model[:-1].transform(texts), model[:-1].transform(test_texts)
scores, nearest = learner.kneighbors(X_test[:1], n_neighbors=1)
nearest = int(nearest[0, 0])
print(f"\na new story, {test_topics[0]}: {test_texts[0][:60]} ...")
print(f"the nearest one, {topics[nearest]}: {texts[nearest][:60]} ...")
reasons = learner.explain_pair(X_test[:1], X[nearest : nearest + 1])
print(reasons.head(4).to_string(index=False))
