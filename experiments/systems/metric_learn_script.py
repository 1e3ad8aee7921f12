"""Fits a learner of metric-learn in the environment that has it: rows.npz in, components.npy out.

Arguments: a folder, and what is asked as JSON. Imports nothing of this package, which is not installed there.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

folder, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
warnings.filterwarnings("ignore")

import metric_learn  # noqa: E402

rows = np.load(folder / "rows.npz")
if asked["method"] == "lmnn":
    learner = metric_learn.LMNN(n_neighbors=3, max_iter=asked["max_iter"], random_state=asked["seed"])
else:
    learner = metric_learn.SCML_Supervised(
        k_genuine=3,
        k_impostor=5,
        max_iter=asked["max_iter"],
        output_iter=min(500, asked["max_iter"]),
        random_state=asked["seed"],
    )
learner.fit(rows["X"], rows["y"])
np.save(folder / "components.npy", learner.components_)
