"""Scripts for metric-learn run with this package after a change of the import and of the class name alone.

python/check runs this file beside metric-learn, with the last scikit-learn that metric-learn supports. Elsewhere, the scripts
run with this package only.
"""

import functools
import json
import subprocess
import sys
import textwrap

import pytest

PAIRS = """
    import json
    import numpy as np
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from {module} import {name}

    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 150, (2, 600))
    keep = first != second
    pairs = np.stack([first, second], axis=1)[keep]
    labels = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    train, test = slice(0, 400), slice(400, None)

    learner = {name}(preprocessor=X, random_state=0)
    learner.fit(pairs[train], labels[train])
    assert set(np.unique(learner.predict(pairs[test]))) <= {{-1, 1}}
    learner.calibrate_threshold(pairs[train], labels[train], strategy="max_tnr", min_rate=0.8)
    learner.calibrate_threshold(pairs[train], labels[train])
    accuracy = np.mean(learner.predict(pairs[test]) == labels[test])
    threshold = learner.threshold_
    learner.set_threshold(threshold)

    rows = {name}(random_state=0).fit(X[pairs[train]], labels[train])  # rows in place of indices
    assert rows.predict(X[pairs[test]]).shape == labels[test].shape
    cross = cross_val_score({name}(preprocessor=X, random_state=0), pairs, labels, cv=3)
    auc = learner.score(pairs[test], labels[test])
"""

TRIPLETS = """
    import json
    import numpy as np
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from {module} import {name}

    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    anchor, near, far = rng.integers(0, 150, (3, 4000))
    keep = (y[anchor] == y[near]) & (y[anchor] != y[far]) & (anchor != near)
    triplets = np.stack([anchor, near, far], axis=1)[keep]
    train, test = slice(0, 400), slice(400, None)

    learner = {name}(preprocessor=X, random_state=0)
    learner.fit(triplets[train])
    assert set(np.unique(learner.predict(triplets[test]))) <= {{-1, 1}}
    assert learner.decision_function(triplets[test]).shape == (len(triplets[test]),)
    accuracy = learner.score(triplets[test])
    rows = {name}(random_state=0).fit(X[triplets[train]])
    assert rows.predict(X[triplets[test]]).shape == learner.predict(triplets[test]).shape
    cross = cross_val_score({name}(preprocessor=X, random_state=0), triplets, cv=3)
    auc = None
"""

SUPERVISED = """
    import json
    import numpy as np
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from {module} import {name}

    X, y = load_iris(return_X_y=True)
    learner = {name}(random_state=0).fit(X, y)
    cross = cross_val_score(make_pipeline({name}(random_state=0), KNeighborsClassifier(n_neighbors=3)), X, y, cv=5)
    accuracy, auc = cross.mean(), None
"""

COMMON = """
    Z = learner.transform(X)
    L, M = learner.components_, learner.get_mahalanobis_matrix()
    assert Z.shape == (150, L.shape[0]) and L.shape[1] == 4 and M.shape == (4, 4)
    metric = learner.get_metric()
    pairs = np.stack([X[:5], X[60:65]], axis=1)
    distances = learner.pair_distance(pairs)
    np.testing.assert_allclose(distances, [metric(u, v) for u, v in pairs], atol=1e-6)
    np.testing.assert_allclose(distances, np.linalg.norm(Z[:5] - Z[60:65], axis=1), atol=1e-6)
    np.testing.assert_allclose(distances**2, [metric(u, v, squared=True) for u, v in pairs], atol=1e-6)
    near, far = learner.pair_score(np.stack([X[:5], X[5:10]], axis=1)), learner.pair_score(pairs)
    assert near.mean() > far.mean()  # higher is more similar
    learner.set_params(random_state=1)
    print(json.dumps(dict(accuracy=float(accuracy), auc=auc, cross=float(np.mean(cross)))))
"""

SCRIPTS = {
    "ITML": (PAIRS, "PairHDSL"),
    "SCML": (TRIPLETS, "TripletHDSL"),
    "SCML_Supervised": (SUPERVISED, "HDSL"),
}


@functools.cache
def told(theirs, module, name):
    script = textwrap.dedent(SCRIPTS[theirs][0]) + textwrap.dedent(COMMON)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script.format(module=module, name=name)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("theirs", SCRIPTS)
def test_a_script_runs_after_a_change_of_names(theirs):
    ours = told(theirs, "hdsl", SCRIPTS[theirs][1])
    assert ours["accuracy"] > 0.85 and ours["cross"] > 0.85


@pytest.mark.parametrize("theirs", SCRIPTS)
def test_the_same_script_runs_with_metric_learn(theirs):
    pytest.importorskip("metric_learn")
    result = told(theirs, "metric_learn", theirs)
    ours = told(theirs, "hdsl", SCRIPTS[theirs][1])
    print(theirs, result, ours)
    assert result["accuracy"] > 0.8  # the script is a sensible one
    assert ours["cross"] > result["cross"] - 0.05
