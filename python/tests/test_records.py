"""Models of records, which the program trains on CSV files, and names that pipelines know."""

import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hdsl import HDSL, DiagonalSimilarity, HDSLClassifier, plot

GOOD, BAD = ["delicious", "savoury", "fresh", "crisp"], ["stale", "soggy", "bland", "burnt"]


def reviews(n, seed):
    random = np.random.default_rng(seed)
    texts, classes = [], []
    for at in range(n):
        words = random.choice(GOOD if at % 2 else BAD, 2, replace=False)
        noise = random.choice(["soup", "rice", "bread", "fish", "pasta", "salad"])
        texts.append(f"The {noise} was {words[0]}, and it tasted {words[1]}")
        classes.append("good" if at % 2 else "bad")
    return pd.DataFrame({"id": [f"r{seed}-{n}" for n in range(n)], "verdict": classes, "review": texts, "price": random.random(n)})


def run(program, folder, *args):
    out = subprocess.run([program, *map(str, args)], capture_output=True, text=True, cwd=folder)
    assert out.returncode == 0, out.stderr
    return out.stdout


@pytest.fixture
def trained(program, tmp_path):
    train, new = reviews(80, 0), reviews(20, 1)
    train.to_csv(tmp_path / "reviews.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    options = ["--label", "verdict", "--text", "review", "--scale", 10, "--max-iter", 50]
    run(program, tmp_path, "train", "reviews.csv", *options, "-o", "reviews.hdsl")
    run(program, tmp_path, "train", "reviews.csv", *options, "--numeric", "price", "-o", "two.hdsl")
    return tmp_path, new


def test_a_model_of_the_program_takes_texts_and_frames(program, trained):
    folder, new = trained
    model = HDSLClassifier.load(folder / "reviews.hdsl")
    said = run(program, folder, "predict", "reviews.hdsl", "new.csv").split()
    assert said == run(program, folder, "predict", "reviews.hdsl", "new.parquet").split()
    assert said == list(new["verdict"])
    for X in [list(new["review"]), new["review"], new["review"].to_numpy(), new, pl.from_pandas(new), pl.from_pandas(new)["review"]]:
        assert list(model.predict(X)) == said
    assert model.explain().features["name"].str.startswith("review:").all()
    pairs = model.explain_pair("a delicious soup", "savoury and fresh")
    named = set(pairs["feature_x"]) | set(pairs["feature_z"])
    assert named and named <= {f"review:{word}" for word in ["delicious", "soup", "savoury", "and", "fresh"]}
    assert model.kneighbors(["delicious, savoury"], 3)[1].shape == (1, 3)
    with pytest.raises(ValueError, match="X has no column 'review'"):
        model.predict(new[["id", "price"]])
    with pytest.raises(TypeError, match=r"X\[1\] is 3, expected a text"):
        model.predict(pd.Series(["a", 3], dtype=object))


def test_several_columns_need_a_frame(program, trained):
    folder, new = trained
    model = HDSLClassifier.load(folder / "two.hdsl")
    assert list(model.predict(new)) == run(program, folder, "predict", "two.hdsl", "new.csv").split()
    with pytest.raises(ValueError, match=r"the model needs the columns \['review', 'price'\]"):
        model.predict(["text"])
    missing = new.assign(price=np.nan)
    assert len(model.predict(missing)) == len(new)
    with pytest.raises(ValueError, match="row 0, column `price`: `dear`"):
        model.predict(new.assign(price="dear"))


def test_a_model_of_records_survives_python(program, trained):
    folder, new = trained
    model = HDSLClassifier.load(folder / "reviews.hdsl")
    model.save(folder / "again.hdsl")
    assert (folder / "again.hdsl").read_bytes() == (folder / "reviews.hdsl").read_bytes()
    few = model.at(n_features=4)
    few.save(folder / "few.hdsl")
    assert list(few.predict(new)) == run(program, folder, "predict", "few.hdsl", "new.csv").split()


def test_names_of_a_pipeline_reach_explanations_reports_and_plots(tmp_path):
    data, new = reviews(80, 0), reviews(20, 1)
    texts, y = data["review"], data["verdict"]
    for steps in [
        [CountVectorizer()],
        [TfidfVectorizer()],
        [CountVectorizer(), SelectKBest(chi2, k=10)],
    ]:
        model = make_pipeline(*steps, HDSLClassifier(scale=10, max_iter=40)).fit(texts, y)
        learner, known = model[-1], set(model[:-1].get_feature_names_out())
        names = learner.explain().features["name"]
        assert len(names) and set(names) <= known
        labels = [label.get_text() for label in plot.matrix(learner, names=True).get_yticklabels()]
        assert set(labels) == set(names)
        assert set(learner.explain_pair(model[:-1].transform([texts[1]]), model[:-1].transform([texts[3]]))["feature_x"]) <= known
        learner.report(tmp_path / "r.html", model[:-1].transform(new["review"]), new["verdict"])
        assert names[0] in (tmp_path / "r.html").read_text()
    frame = make_pipeline(ColumnTransformer([("words", CountVectorizer(), "review")]), HDSL(scale=10, max_iter=20)).fit(data, y)
    assert frame[-1].explain().features["name"].str.startswith("words__").all()
    diagonal = make_pipeline(CountVectorizer(), DiagonalSimilarity()).fit(texts, y)
    assert set(diagonal[-1].explain().features["name"]) <= set(diagonal[0].get_feature_names_out())


def test_names_of_a_pipeline_in_a_search_and_without_names():
    data = reviews(60, 0)
    pipeline = make_pipeline(CountVectorizer(), HDSLClassifier(scale=10, max_iter=10))
    search = GridSearchCV(pipeline, {"hdslclassifier__scale": [1, 10]}, cv=2).fit(data["review"], data["verdict"])
    best = search.best_estimator_
    assert set(best[-1].explain().features["name"]) <= set(best[0].get_feature_names_out())
    # Outside of a pipeline nobody knows them.
    X = CountVectorizer().fit_transform(data["review"])
    assert clone(pipeline[-1]).fit(X, data["verdict"]).explain().features["name"].str.match(r"x\d+$").all()
