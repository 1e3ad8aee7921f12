from sklearn.datasets import load_svmlight_file
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from hdsl import HDSLClassifier

# hdsl.datasets.fetch_dorothea() downloads the original files.
X, y = load_svmlight_file("data/dorothea/train.svm.bz2", n_features=100_000)
X_test, y_test = load_svmlight_file("data/dorothea/valid.svm.bz2", n_features=100_000)
y, y_test = (["binds" if value > 0 else "does not bind" for value in part] for part in (y, y_test))
print(f"{X.shape[0]} molecules, {X.shape[1]:,} fragments, {y.count('binds')} molecules bind to thrombin")

# One class is ten times as frequent: random triplets weight both alike.
learner = HDSLClassifier(
    scale=[10, 100, 1000], triplets="random:50", max_iter=300, n_neighbors=5, vote="weighted",
    early_stopping=True, validation_fraction=0.3, n_iter_no_change=100,
).fit(X, y)  # fmt: skip
print(f"lambda {learner.scale_:g}, {learner.n_active_features_} fragments in use")

predicted = learner.predict(X_test)
probability = learner.predict_proba(X_test)[:, list(learner.classes_).index("binds")]
print(f"balanced error {1 - balanced_accuracy_score(y_test, predicted):.1%}")
print(f"area under the ROC curve {roc_auc_score([c == 'binds' for c in y_test], probability):.3f}")
