"""The estimators of the package on the workers of a Dask cluster: ``pip install hdsl[dask]``.

The rows are Dask's collections and stay on the workers. The model is that of one process on the same rows, with the same seed.
"""

try:
    import dask as _dask  # noqa: F401
    import distributed as _distributed  # noqa: F401
except ImportError as _missing:  # pragma: no cover
    raise ImportError("hdsl.dask needs dask and distributed: pip install hdsl[dask]") from _missing

from hdsl.dask._errors import DataLost, WorkerLost
from hdsl.dask._estimators import HDSL, HDSLClassifier, TripletHDSL
from hdsl.dask._read import read_svmlight

__all__ = ["HDSL", "DataLost", "HDSLClassifier", "TripletHDSL", "WorkerLost", "read_svmlight"]
