import bz2

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from hdsl import HDSLClassifier


def read(part):
    with bz2.open(f"data/r8_text/{part}.tsv.bz2", "rt", encoding="utf-8") as lines:
        return zip(*(line.rstrip("\n").split("\t", 1) for line in lines))


classes, texts = read("train")
test_classes, test_texts = read("test")

# Before: k-NN by tf-idf cosine.
before = make_pipeline(
    TfidfVectorizer(sublinear_tf=True), KNeighborsClassifier(3, metric="cosine")
).fit(texts, classes)
print(f"tf-idf cosine: error {1 - before.score(test_texts, test_classes):.1%}")

# After: the same cosine as the base, and what the classes add to it.
after = make_pipeline(CountVectorizer(), HDSLClassifier()).fit(texts, classes)
learner = after[-1]
print(f"learned on top: error {1 - after.score(test_texts, test_classes):.1%}")
print(f"preprocessing {learner.preprocess_}, base {learner.base_:.3g}, {learner.n_active_features_} words in M")
