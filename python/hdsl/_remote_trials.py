"""Trials of `hdsl.tune` on the workers of a Dask cluster.

The search runs in the client's process, in Rust. A task of it, one segment of a trial on one fold, becomes Dask tasks: one
that trains each model, whose result stays on its worker, and one that evaluates them there. Placement, transport and the
detection of lost workers are Dask's. What a lost worker had is computed again elsewhere, with the same result.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from hdsl import _core

if TYPE_CHECKING:
    from distributed import Client, Future

#: A task: its bytes, its name, the name of the task whose models it continues, the number of models, its rung, its place.
Task = tuple[bytes, str, "str | None", int, int, int]

#: How often a task may be lost until the search gives up. Dask itself starts a task four times before that counts as one.
MOST_LOSSES = 10

#: The share of the memory limit of a Dask worker that trials may take: Dask pauses a worker at 0.8.
MEMORY_SHARE = 0.7


class TrialRows:
    """The rows of a search. On a worker, folds and preprocessed rows are made from them once, for all tasks there."""

    def __init__(self, version: str, arguments: dict[str, Any]) -> None:
        self.version = version
        self.arguments = arguments
        self._lock = threading.Lock()
        self._data: _core.TrialData | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return TrialRows, (self.version, self.arguments)

    def __sizeof__(self) -> int:
        x = self.arguments["x"]
        return int(x.data.nbytes + x.indices.nbytes + x.indptr.nbytes)

    def data(self) -> _core.TrialData:
        """The compiled side."""
        with self._lock:
            if self._data is None:
                if self.version != _core.__version__:
                    raise RuntimeError(
                        f"a Dask worker has hdsl {_core.__version__} and the client has hdsl {self.version}; "
                        "install the same version on both"
                    )
                arguments = {name: _aligned(value) for name, value in self.arguments.items()}
                settings, x, classes = (arguments.pop(name) for name in ("settings", "x", "classes"))
                n_threads, memory = _resources()
                self._data = _core.TrialData(
                    {**settings, "memory": memory}, x, classes, **arguments, side_by_side=n_threads
                )
            return self._data


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


def train_trial(rows: TrialRows, task: bytes, model: int, begun: _core.TrialState | None) -> _core.TrialState:
    """Train one model of a task; runs on a worker."""
    return rows.data().train(task, model, begun, _check())


def evaluate_trial(rows: TrialRows, task: bytes, *states: _core.TrialState) -> bytes:
    """Evaluate the models of a task on its validation rows; runs on a worker."""
    return rows.data().evaluate(task, list(states), _check())


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


class RemoteTrials:
    """The tasks of one search on a cluster. A context manager: at its end nothing is left on the workers."""

    def __init__(self, client: Client, arguments: dict[str, Any]) -> None:
        self._client = client
        self._rows = TrialRows(_core.__version__, arguments)
        self._lock = threading.RLock()
        #: The trained models of tasks, by the name of the task, with its rung.
        self._states: dict[str, tuple[int, list[Future]]] = {}
        self._pending: set[Future] = set()
        self._data = self._scattered()

    def __enter__(self) -> RemoteTrials:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._cancel([*self._pending, *(state for _, states in self._states.values() for state in states)])
            self._states.clear()
            self._pending.clear()
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
        return Batch(self, tasks)

    def start(self, task: Task) -> Future:
        """Start a task; the result of the future is that of the search."""
        body, name, previous, n_models, rung, order = task
        with self._lock:
            if self._client.status != "running":
                raise RuntimeError(f"the Dask client is {self._client.status}, and the search is not done")
            if self._data.status != "finished":  # lost with the last worker that had it
                self._data = self._scattered()
            # Models that were not continued in the last rung are never continued.
            self._states = {key: kept for key, kept in self._states.items() if kept[0] >= rung - 1}
            begun: list[Any] = [None] * n_models
            if previous in self._states:
                states = self._states[previous][1]
                if all(state.status in ("pending", "finished") for state in states):
                    begun = states
            states = [self._submit(train_trial, order, body, model, begun[model]) for model in range(n_models)]
            self._states[name] = (rung, states)
            result = self._submit(evaluate_trial, order, body, *states)
            self._pending.add(result)
            return result

    def _submit(self, function: Callable[..., Any], order: int, *arguments: Any) -> Future:
        name = f"{function.__name__}-{uuid.uuid4().hex}"
        # Higher priorities first: trials begin in their order.
        return self._client.submit(function, self._data, *arguments, key=name, pure=False, priority=-order)

    def done(self, future: Future) -> None:
        """Forget a future whose result is there."""
        with self._lock:
            self._pending.discard(future)

    def cancel(self, task: Task, result: Future) -> None:
        """Cancel a task, and end it if it runs."""
        with self._lock:
            self._pending.discard(result)
            _, states = self._states.pop(task[1], (0, []))
            self._cancel([result, *states])

    def _cancel(self, futures: list[Future]) -> None:
        if futures and self._client.status == "running":
            self._client.cancel(futures)


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
        self._trials.done(self._futures.pop(place))
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
        for place, future in self._futures.items():
            self._trials.cancel(self._tasks[place], future)


def _is_loss(error: BaseException) -> bool:
    """Whether there is no result because workers are gone: those that ran the task, or all that had the rows it needs."""
    import distributed
    from distributed.scheduler import KilledWorker

    return isinstance(error, asyncio.CancelledError | distributed.CancelledError | KilledWorker | TrialCancelled)
