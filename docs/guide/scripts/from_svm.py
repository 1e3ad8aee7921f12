import bz2

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from hdsl import HDSL, HDSLClassifier


def read(part):
    with bz2.open(f"data/r8_text/{part}.tsv.bz2", "rt", encoding="utf-8") as lines:
        return zip(*(line.rstrip("\n").split("\t", 1) for line in lines))


classes, texts = read("train")
test_classes, test_texts = read("test")

# Classes of new rows: both can be used.
svm = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC()).fit(texts, classes)
learned = make_pipeline(CountVectorizer(), HDSLClassifier()).fit(texts, classes)
print(f"linear SVM: error {1 - svm.score(test_texts, test_classes):.1%}")
print(f"HDSL:       error {1 - learned.score(test_texts, test_classes):.1%}")

# Classes that training has not seen: a similarity still finds their rows.
new = {"ship", "grain"}
known = [n for n, name in enumerate(classes) if name not in new]
words = CountVectorizer().fit([texts[n] for n in known])
similarity = HDSL().fit(words.transform([texts[n] for n in known]), [classes[n] for n in known])

shelf = [n for n, name in enumerate(classes) if name in new]
asked = [n for n, name in enumerate(test_classes) if name in new]
scores = similarity.similarity(
    words.transform([test_texts[n] for n in asked]), words.transform([texts[n] for n in shelf])
)
right = [
    classes[shelf[best]] == test_classes[n] for n, best in zip(asked, scores.argmax(axis=1))
]
print(f"unseen classes: the nearest row has the right one for {sum(right)} of {len(right)}")
