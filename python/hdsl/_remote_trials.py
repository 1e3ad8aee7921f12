"""Trials of `hdsl.tune` on the workers of a Dask cluster.

The search runs in the client's process, in Rust. A task of it, one segment of a trial on one fold, becomes Dask tasks: one
that mines the triplets that it shares with others, one that trains each model, whose result stays on its worker, and one that
evaluates them there. Placement, transport and the
detection of lost workers are Dask's. What a lost worker had is computed again elsewhere, with the same result.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hdsl import _core
from hdsl._malloc import keep_freed, return_freed

if TYPE_CHECKING:
    from distributed import Client, Future

#: A task: its bytes, its name, the name of the task whose models it continues, the name of the triplets it shares with others,
#: the number of models, its rung, its place.
Task = tuple[bytes, str, "str | None", "str | None", int, int, int]

#: How often a task may be lost until the search gives up. Dask itself starts a task four times before that counts as one.
MOST_LOSSES = 10

#: How long a worker keeps what it made of the rows after its last task.
KEPT_SECONDS = 30.0

#: The share of the memory limit of a Dask worker that trials may take: Dask pauses a worker at 0.8.
MEMORY_SHARE = 0.7


class TrialRows:
    """The rows of a search. On a worker, folds and preprocessed rows are made from them once, for all tasks there."""

    def __init__(self, search: str, version: str, arguments: dict[str, Any]) -> None:
        self.search = search
        self.version = version
        self.arguments = arguments

    def __sizeof__(self) -> int:
        x = self.arguments["x"]
        return int(x.data.nbytes + x.indices.nbytes + x.indptr.nbytes)

    @contextlib.contextmanager
    def data(self) -> Iterator[_core.TrialData]:
        """The compiled side, for the time of a task."""
        with _lock:
            if not _kept:
                keep_freed()
            kept = _kept.setdefault(self.search, Kept())
            kept.n_tasks += 1
        try:
            with kept.lock:
                if kept.data is None:
                    kept.data = self._made()
            yield kept.data
        finally:
            with _lock:
                kept.n_tasks -= 1
                kept.forget_later(self.search)

    def _made(self) -> _core.TrialData:
        if self.version != _core.__version__:
            raise RuntimeError(
                f"a Dask worker has hdsl {_core.__version__} and the client has hdsl {self.version}; "
                "install the same version on both"
            )
        arguments = {name: _aligned(value) for name, value in self.arguments.items()}
        settings, x, classes = (arguments.pop(name) for name in ("settings", "x", "classes"))
        n_threads, memory = _resources()
        return _core.TrialData({**settings, "memory": memory}, x, classes, **arguments, side_by_side=n_threads)


class Kept:
    """What a worker makes of the rows of a search. It outlives the rows: Dask drops copies that few tasks wait for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.data: _core.TrialData | None = None
        self.n_tasks = 0
        self._timer: threading.Timer | None = None

    def forget_later(self, search: str) -> None:
        """Forget it unless there are tasks for a while: the search is done, or its client is gone."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(KEPT_SECONDS, forget, (search,))
        self._timer.daemon = True
        self._timer.start()


#: By the name of the search.
_kept: dict[str, Kept] = {}
_lock = threading.Lock()


def forget(search: str) -> None:
    """Forget a search of which no task runs; on a worker."""
    with _lock:
        kept = _kept.get(search)
        if kept is not None and kept.n_tasks == 0:
            del _kept[search], kept
            if not _kept:
                return_freed()


def _aligned(value: Any) -> Any:
    """The same arrays, copied if they are not aligned: those that arrive in a message begin anywhere in it."""
    if isinstance(value, np.ndarray):
        return np.require(value, requirements=["C", "A"])
    if sp.issparse(value):
        parts = _aligned((value.data, value.indices, value.indptr))
        return type(value)(parts, shape=value.shape)
    if isinstance(value, tuple | list):
        return type(value)(map(_aligned, value))
    return value


def mine_triplets(rows: TrialRows, task: bytes) -> _core.SharedTriplets:
    """Mine the triplets that a task shares with others; runs on a worker."""
    with rows.data() as data:
        return data.mine(task, _check())


def train_trial(
    rows: TrialRows, task: bytes, model: int, begun: _core.TrialState | None, mined: _core.SharedTriplets | None
) -> _core.TrialState:
    """Train one model of a task; runs on a worker."""
    with rows.data() as data:
        return data.train(task, model, begun, mined, _check())


def evaluate_trial(rows: TrialRows, task: bytes, *states: _core.TrialState) -> bytes:
    """Evaluate the models of a task on its validation rows; runs on a worker."""
    with rows.data() as data:
        return data.evaluate(task, list(states), _check())


class TrialCancelled(Exception):
    """A task was cancelled while it ran."""


def _check() -> Callable[[Any], None]:
    """A function that raises when nobody waits for the running task any more: cancelled, or its client is gone."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return lambda _: None
    key = worker.get_current_task()

    def check(_: Any) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise TrialCancelled(key)

    return check


def _resources() -> tuple[int, int | None]:
    """The number of tasks that a worker runs side by side, and the bytes that they may take together."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return 1, None
    limit = worker.memory_manager.memory_limit
    return worker.state.nthreads, int(MEMORY_SHARE * limit) if limit else None


def remote_trials(client: Any, arguments: dict[str, Any]) -> RemoteTrials:
    """The tasks of a search on the cluster of this client."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("client needs Dask: pip install 'hdsl[dask]'") from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise ValueError("client is asynchronous; pass a Client that is not")
    if client.status != "running":
        raise ValueError(f"client is {client.status}; connect it to a cluster first")
    # The search records finished tasks itself.
    return RemoteTrials(client, {**arguments, "settings": {**arguments["settings"], "journal": None}})


class Started(NamedTuple):
    """A task on the cluster: its rung, its models as far as they are trained, and its result."""

    rung: int
    states: list[Future]
    result: Future


class RemoteTrials:
    """The tasks of one search on a cluster. A context manager: at its end nothing is left on the workers."""

    def __init__(self, client: Client, arguments: dict[str, Any]) -> None:
        self._client = client
        self._rows = TrialRows(uuid.uuid4().hex, _core.__version__, arguments)
        self._lock = threading.RLock()
        #: Tasks of the last two rungs, by name.
        self._started: dict[str, Started] = {}
        #: Triplets that tasks share, by name.
        self._mined: dict[str, Future] = {}
        self._data = self._scattered()

    def __enter__(self) -> RemoteTrials:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._cancel([task.result for task in self._started.values()])
            self._started.clear()
            self._mined.clear()
            del self._data

    def _scattered(self) -> Future:
        """The rows, on all workers there are. Workers that come later get them from others."""
        import distributed

        for _ in range(MOST_LOSSES):
            try:
                return self._client.scatter(self._rows, broadcast=True, hash=False)
            except distributed.TimeoutError:  # no workers
                raise
            except OSError:  # a worker was lost while it received them
                time.sleep(0.5)
        return self._client.scatter(self._rows, broadcast=True, hash=False)

    def submit(self, tasks: list[Task]) -> Batch:
        """Start some tasks."""
        # Dask runs tasks where the rows are, and has dropped copies of them if few tasks waited for them.
        self._client.replicate([self._data])
        return Batch(self, tasks)

    def start(self, task: Task) -> Future:
        """Start a task, unless another trial with the same beginning has; the result of the future is that of the search."""
        body, name, previous, _, n_models, rung, order = task
        with self._lock:
            if self._client.status != "running":
                raise RuntimeError(f"the Dask client is {self._client.status}, and the search is not done")
            if self._data.status != "finished":  # lost with the last worker that had them
                self._data = self._scattered()
            # Models that were not continued in the last rung are never continued.
            self._started = {key: kept for key, kept in self._started.items() if kept.rung >= rung - 1}
            known = self._started.get(name)
            if known is not None and _is_there(known.result):
                self._started[name] = known._replace(rung=rung)
                return known.result
            begun: list[Any] = [None] * n_models
            if previous in self._started:
                states = self._started[previous].states
                if all(map(_is_there, states)):
                    begun = states
            mined = self._shared_triplets(task)
            states = [self._submit(train_trial, order, body, model, begun[model], mined) for model in range(n_models)]
            result = self._submit(evaluate_trial, order, body, *states)
            self._started[name] = Started(rung, states, result)
            return result

    def _shared_triplets(self, task: Task) -> Future | None:
        """What `mine_triplets` makes, or will make, for tasks that share these triplets."""
        body, _, _, name, _, _, order = task
        if name is None:
            return None
        mined = self._mined.get(name)
        if mined is None or not _is_there(mined):
            mined = self._mined[name] = self._submit(mine_triplets, order, body)
        return mined

    def _submit(self, function: Callable[..., Any], order: int, *arguments: Any) -> Future:
        name = f"{function.__name__}-{uuid.uuid4().hex}"
        # Higher priorities first: trials begin in their order.
        return self._client.submit(function, self._data, *arguments, key=name, pure=False, priority=-order)

    def cancel(self, task: Task) -> None:
        """Cancel a task, and end it if it runs."""
        with self._lock:
            started = self._started.pop(task[1], None)
            if started is not None:
                self._cancel([started.result])

    def _cancel(self, results: list[Future]) -> None:
        """Cancel evaluations only: Dask ends the training tasks when their last future is dropped. To cancel these as well fails
        in its scheduler if a task that depends on them is already released."""
        if results and self._client.status == "running":
            self._client.cancel(results)


class Batch:
    """Tasks whose results are waited for together."""

    def __init__(self, trials: RemoteTrials, tasks: list[Task]) -> None:
        self._trials = trials
        self._tasks = tasks
        self._ready: queue.SimpleQueue[tuple[int, bytes | BaseException]] = queue.SimpleQueue()
        self._futures: dict[int, Future] = {}
        self._losses = [0] * len(tasks)
        for place in range(len(tasks)):
            self._start(place)

    def _start(self, place: int) -> None:
        future = self._futures[place] = self._trials.start(self._tasks[place])
        future.client.loop.add_callback(self._deliver, place, future)

    async def _deliver(self, place: int, future: Future) -> None:
        """Wait for a result, in the event loop of the client."""
        try:
            self._ready.put((place, await future))
        except BaseException as error:  # asyncio's CancelledError is no Exception
            self._ready.put((place, error))

    def wait(self, seconds: float) -> list[tuple[int, bytes]]:
        """The place and the result of a task that is done, if there is one after so many seconds."""
        try:
            place, result = self._ready.get(timeout=seconds)
        except queue.Empty:
            return []
        del self._futures[place]
        if isinstance(result, bytes):
            return [(place, result)]
        if not _is_loss(result):
            raise result
        self._losses[place] += 1
        if self._losses[place] > MOST_LOSSES:
            name = self._tasks[place][1]
            raise RuntimeError(f"the trial {name!r} was lost with its Dask workers too often") from result
        self._start(place)
        return []

    def cancel(self) -> None:
        """Cancel what is not done."""
        for place in self._futures:
            self._trials.cancel(self._tasks[place])


def _is_there(future: Future) -> bool:
    """Whether the result of a task is there or will be."""
    return future.status in ("pending", "finished")


def _is_loss(error: BaseException) -> bool:
    """Whether there is no result because workers are gone: those that ran the task, or all that had the rows it needs."""
    import distributed
    from distributed.scheduler import KilledWorker

    return isinstance(error, asyncio.CancelledError | distributed.CancelledError | KilledWorker | TrialCancelled)
