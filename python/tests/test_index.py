"""hdsl.Index: the same neighbors as the estimators, files, threads."""

from __future__ import annotations

import re
import subprocess
import threading

import numpy as np
import pytest

import hdsl
from conftest import planted


@pytest.fixture(scope="module")
def data():
    X, y = planted(1500, 400, seed=3)
    X.data = np.ceil(5 * X.data)
    return X, np.array(["ash", "birch", "cedar", "elm"])[y]


@pytest.fixture(scope="module", params=["dot", "cosine"])
def learner(request, data):
    X, y = data
    settings = {"scale": 5, "base": 0.5, "max_iter": 40, "normalization": request.param, "random_state": 0}
    return hdsl.HDSLClassifier(**settings).fit(X[:1200], y[:1200])


def test_it_finds_what_kneighbors_finds(data, learner):
    X, y = data
    index = hdsl.Index(learner).add(X[:700], y[:700]).add(X[700:1200], y[700:1200])
    assert len(index) == 1200 and index.normalization == learner.normalization
    scores, rows = index.kneighbors(X[1200:], 7)
    expected_scores, expected = learner.kneighbors(X[1200:], 7)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(scores, expected_scores)
    np.testing.assert_array_equal(index.predict(X[1200:]), learner.predict(X[1200:]))
    hits = index.search(X[1200:1201], k=3)[0]
    assert [hit.row for hit in hits] == list(expected[0, :3])
    assert [hit.label for hit in hits] == list(y[expected[0, :3]])
    contributions = index.explain(X[1200:1201], hits[0].row)
    assert sum(value for value, _, _ in contributions) == pytest.approx(hits[0].score)


def test_files_are_appended_to_and_loaded(data, learner, tmp_path):
    X, y = data
    path = tmp_path / "rows.index"
    ids = [f"row-{n}" for n in range(1200)]
    hdsl.Index(learner).add(X[:1200], y[:1200], ids=ids, texts=[f"text {n}" for n in ids]).save(path)
    before = path.stat().st_size
    index = hdsl.Index.load(path)
    index.remove(["row-3"]).add(X[1200:1202], ids=["a", "b"]).save()
    assert path.stat().st_size < before + 20_000
    again = hdsl.Index.load(path)
    assert len(again) == 1201 and 3 not in again.rows_
    hit = again.search(X[1201:1202], k=1201)[0]
    assert {"a", "b"} <= {one.id for one in hit} and "row-3" not in {one.id for one in hit}
    assert next(one for one in hit if one.id == "row-7").text == "text row-7"
    with pytest.raises(KeyError, match="row-3"):
        again.remove(["row-3"])
    with pytest.raises(ValueError, match="already"):
        again.add(X[:1], ids=["a"])
    assert len(again.add(X[:1], ids=["a"], replace=True)) == 1201
    other = hdsl.Index.load(path)
    other.remove(["b"]).save()
    with pytest.raises(ValueError, match="changed by another process"):
        again.save()


def test_searches_run_while_rows_are_added(data, learner):
    X, y = data
    index = hdsl.Index(learner, n_jobs=1).add(X[:1100], y[:1100])
    wrong = []

    def search():
        for _ in range(20):
            found = index.search(X[1200:1210], k=5)
            if any(len(hits) != 5 or sorted(hits, key=lambda h: (-h.score, h.row)) != hits for hits in found):
                wrong.append(found)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(1100, 1200, 5):
        index.add(X[start : start + 5], y[start : start + 5])
    for thread in threads:
        thread.join()
    assert not wrong and len(index) == 1200
    np.testing.assert_array_equal(index.kneighbors(X[1200:], 4)[1], learner.kneighbors(X[1200:], 4)[1])


def test_bad_input_is_refused(data, learner, tmp_path):
    X, y = data
    index = hdsl.Index(learner).add(X[:5])
    with pytest.raises(ValueError, match="399 features"):
        index.search(X[:, :399])
    with pytest.raises(ValueError, match="no label"):
        index.predict(X[:1])
    with pytest.raises(ValueError, match="not in the index"):
        index.remove([7])
    with pytest.raises(ValueError, match="2 labels for 3 rows"):
        index.add(X[:3], y[:2])
    with pytest.raises(ValueError, match="no file yet"):
        index.save()
    with pytest.raises(FileNotFoundError):
        hdsl.Index.load(tmp_path / "missing.index")
    with pytest.raises(TypeError, match="expected a fitted HDSL"):
        hdsl.Index(hdsl.DiagonalSimilarity().fit(X[:50], y[:50]))
    (tmp_path / "other.index").write_text("1 3:1\n")
    with pytest.raises(ValueError, match="not an hdsl index"):
        hdsl.Index.load(tmp_path / "other.index")


def test_a_model_file_is_enough(data, learner, tmp_path):
    X, y = data
    learner.save(tmp_path / "m.hdsl")
    index = hdsl.Index(tmp_path / "m.hdsl").add(X[:1200], y[:1200])
    np.testing.assert_array_equal(index.predict(X[1200:]), learner.predict(X[1200:]))


def test_texts_are_searched_with_a_model_of_records(program, tmp_path):
    words = ["tasty", "delicious", "fresh", "stale", "soggy", "burnt"]
    texts = [f"{word} {dish} number{n}" for n in range(8) for word in words for dish in ("soup", "rice")]
    stars = ["bad" if any(word in text for word in words[3:]) else "good" for text in texts]
    lines = [f"r{n},{star},{text}" for n, (star, text) in enumerate(zip(stars, texts))]
    (tmp_path / "reviews.csv").write_text("\n".join(["key,stars,body", *lines]) + "\n")

    def run(*args):
        done = subprocess.run([program, *args], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    columns = ["--label", "stars", "--text", "body", "--id", "key"]
    options = ["--preprocess", "none", "--lambda", "5", "--base", "1", "--max-iter", "30"]
    run("train", "reviews.csv", *columns, *options, "-o", "m.hdsl")
    run("index", "build", "m.hdsl", "reviews.csv", "-o", "m.index")
    index = hdsl.Index.load(tmp_path / "m.index")
    query = "a delicious soup"
    hits = index.search([query], k=3)[0]
    shown = run("index", "search", "m.index", query, "-k", "3")
    assert [hit.id for hit in hits] == re.findall(r"^ +\d+\. \S+ +(r\d+) ", shown, re.M)
    assert all(hit.text == texts[int(hit.id[1:])] and hit.label == stars[int(hit.id[1:])] for hit in hits)
    assert list(index.predict([query, "burnt rice"])) == ["good", "bad"]
    assert sum(value for value, _, _ in index.explain(query, hits[0].id)) == pytest.approx(hits[0].score)
    index.add(["delicious, delicious soup"], ["good"], ids=["new"])
    (hit,) = index.search([query], k=1)[0]
    assert (hit.id, hit.label, hit.text) == ("new", "good", "delicious, delicious soup")
