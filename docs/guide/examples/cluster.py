"""
A fit on a Dask cluster
=======================

Rows on the workers of a cluster, here two processes of this machine: the model is that of one process, and predictions are
computed where the rows are. :doc:`/dask` says when a cluster pays.
"""

# sphinx_gallery_thumbnail_path = '../../benchmarks/plots/cluster.svg'

# %%
# Rows in files
# -------------
# Six files, as if six machines had written them. Each row has some of its class's 30 words among 20,000.

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.datasets import dump_svmlight_file

import hdsl
import hdsl.dask


def texts(n_rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n_rows)
    columns = rng.integers(0, 20_000, (n_rows, 40))
    columns[:, :4] = 30 * y[:, None] + rng.integers(0, 30, (n_rows, 4))
    rows = np.repeat(np.arange(n_rows), 40)
    X = sp.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), shape=(n_rows, 20_000))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as the writer of scikit-learn needs them
    return X, y


folder = tempfile.TemporaryDirectory()
for part in range(6):
    X_part, y_part = texts(200, part)
    dump_svmlight_file(X_part, y_part, str(Path(folder.name) / f"part-{part}.svm"), zero_based=False)


# %%
# The cluster
# -----------
# ``LocalCluster`` starts processes on this machine. For a real cluster, pass its address to ``Client``; nothing else changes.
# Each file is read by the worker that keeps its rows.


def main():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        X, y = hdsl.dask.read_svmlight(str(Path(folder.name) / "part-*.svm"), n_features=20_000, zero_based=False)
        print(X)

        learner = hdsl.dask.HDSLClassifier(scale=30, base="auto", triplets="random:20", preprocess="unit", max_iter=200)
        learner.fit(X, y, client=client)
        facts = learner.distributed_
        print(f"{learner.n_atoms_} pairs of words after {learner.n_iter_} iterations on {facts['n_shards']} shards,")
        print(f"{(facts['bytes_sent'] + facts['bytes_received']) / learner.n_iter_ / 1e3:.0f} kB per iteration")

        # Predictions are lazy Dask arrays.
        X_new, y_new = texts(300, 100)
        new_rows = client.scatter([X_new[:150], X_new[150:]])
        predicted = learner.predict(new_rows)
        print("accuracy", np.mean(predicted.compute() == y_new))

        # The ordinary estimator, in this process.
        local = learner.to_local()
        print(local.explain().pairs.head())

        # One process gives the same similarity.
        alone = hdsl.HDSLClassifier(**learner.get_params()).fit(X.compute(), y.compute())
        print("largest difference of weights:", abs(alone.get_bilinear_matrix() - local.get_bilinear_matrix()).max())


if __name__ == "__main__":
    main()
folder.cleanup()
