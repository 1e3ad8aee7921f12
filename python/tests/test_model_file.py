"""Model files can be read without this package: by safetensors and numpy, as docs/format.md says."""

import json

import numpy as np
from safetensors import safe_open

from conftest import planted
from hdsl import HDSL


def replay(arrays, chosen):
    """The weights of the atoms after the first `chosen` steps."""
    w = np.zeros(len(arrays["atoms"]))
    w[: len(arrays["start_weights"])] = arrays["start_weights"]
    for (kind, atom, second), gamma in list(zip(arrays["steps"], arrays["gammas"]))[:chosen]:
        if kind == 0:
            w *= 1 - gamma
            w[atom] += gamma
        elif kind == 1:
            w *= 1 + gamma
            w[atom] -= gamma
        elif kind == 2:
            old, w[atom] = w[atom], 0
            w /= 1 - old
        elif kind == 3:
            w[second] -= gamma
            w[atom] += gamma
        else:
            assert kind == 4
            w[atom] += w[second]
            w[second] = 0
    return w


def test_safetensors_alone_gives_the_matrix(tmp_path):
    X, y = planted()
    for steps in ("decrease", "away", "pairwise"):
        model = HDSL(scale=20, max_iter=60, step_rule=steps, random_state=0).fit(X, y)
        model.save(tmp_path / "m.hdsl")
        with safe_open(tmp_path / "m.hdsl", framework="numpy") as file:
            metadata = json.loads(file.metadata()["hdsl"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        assert metadata["format_version"] == 2
        d = metadata["n_features"]
        M = np.zeros((d, d))
        for (i, j, minus), weight in zip(arrays["atoms"], replay(arrays, metadata["chosen"])):
            u = np.zeros(d)
            u[i], u[j] = 1, -1 if minus else 1
            M += metadata["scale"] * weight * np.outer(u, u)
        expected = model.get_bilinear_matrix().toarray()
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(M, expected, rtol=0, atol=1e-9 * metadata["scale"])
