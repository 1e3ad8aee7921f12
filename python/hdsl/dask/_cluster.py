"""The cluster as the coordinator of a fit sees it: shards that are built, asked, and built again when a worker is lost.

The coordinator (`_core.train_sharded`) runs Alg. 1 in the process of the client. Each shard has a range of rows as anchors,
their triplets, and the rows that these name. What a shard returns is a sum over its triplets.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Client, Future, wait
from distributed.actor import ProxyRPC
from distributed.scheduler import KilledWorker
from numpy.typing import NDArray

from hdsl import _core
from hdsl.dask import _worker
from hdsl.dask._blocks import Blocks, keep, token
from hdsl.dask._client import workers_of
from hdsl.dask._errors import WorkerLost

__all__ = ["Cluster", "Source"]

#: The number of triplets that β is estimated from, as in the library's `train/base.rs`.
SAMPLE = 10_000

#: How often a fit may be continued after lost workers.
MAX_RECOVERIES = 100

#: Seconds between looks at the workers while shards are built.
HEARTBEAT = 0.5


@dataclass
class Source:
    """Where the triplets of a fit come from."""

    kind: str
    """``"random"``, ``"neighbors"`` or ``"list"``."""
    counts: tuple[int, ...] = ()
    """Triplets per row, or same-class and other-class neighbors."""
    triplets: list[NDArray[np.int64]] | None = None
    """Anchors, nears and fars of a list."""
    weights: NDArray[np.float64] | None = None
    """Weights of a list."""

    @classmethod
    def parse(cls, text: str) -> Source:
        """Of the parameter `triplets`: ``"knn:3:5"`` or ``"random:20"``, with the defaults of the library."""
        kind, *numbers = text.split(":")
        if kind == "knn":
            return cls("neighbors", tuple(int(n) for n in numbers) or (3, 5))
        return cls("random", tuple(int(n) for n in numbers) or (20,))


@dataclass
class Plan:
    """What the shards of one model are built from."""

    rows: Blocks
    codes: NDArray[np.uint32] | None
    features: NDArray[np.uint32]
    ranges: list[tuple[int, int]]
    n_triplets: int
    facts: dict[str, Any]
    #: Sources of triplets for all shards, the lists of neighbors by block; triplets of a list by shard.
    sources: list[Any] = field(default_factory=list)
    held_out: Any = None


class Cluster:
    """Shards on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The client.
    rows : Blocks
        Raw rows to learn from.
    preprocessor : Future
        Their preprocessing.
    source : Source
        The triplets.
    classes : names and codes, or None
        In the order of Python.
    options : dict
        ``loss``, ``n_threads``, ``memory``, ``n_neighbors``, ``normalization``.
    n_shards : int or None
        By default one per worker.
    timeout : float
        Seconds to wait for the answer of a worker, and for workers to come.
    """

    def __init__(
        self,
        client: Client,
        rows: Blocks,
        preprocessor: Future,
        source: Source,
        *,
        classes: tuple[list[str], NDArray[np.int64]] | None,
        options: dict[str, Any],
        valid: Blocks | None = None,
        held_out: tuple[list[NDArray[np.int64]], NDArray[np.float64] | None] | None = None,
        n_shards: int | None = None,
        timeout: float = 300.0,
        on_progress: Any = None,
    ) -> None:
        self.client, self.rows, self.preprocessor, self.source = client, rows, preprocessor, source
        self.classes, self.options = classes, options
        self.valid, self.held_out = valid, held_out
        self.timeout, self.on_progress = timeout, on_progress
        self.n_shards = n_shards or len(workers_of(client, timeout))
        self.codes: NDArray[np.uint32] | None = None
        if classes is not None:
            self.codes = _core.class_order(classes[0])[classes[1]].astype(np.uint32)
        #: The triplets that the caller passed, before anchors were held out.
        self.n_given = 0 if source.triplets is None else len(source.triplets[0])
        if held_out is not None:
            self.n_given += len(held_out[0][0])
        self.plan: Plan | None = None
        self.shards: list[tuple[str, Future]] = []
        self.direct: dict[str, bool] = {}
        self._sums: tuple[Any, Any] | None = None
        self._kept: list[Future] = []
        #: Facts about the run, for `distributed_` of the estimator.
        self.facts: dict[str, Any] = {
            "n_shards": self.n_shards, "recoveries": 0, "rounds": 0, "bytes_sent": 0, "bytes_received": 0,
            "seconds_waiting": 0.0, "seconds_building": 0.0,
        }  # fmt: skip

    # -- what the coordinator calls -----------------------------------------------------------------------------------------

    def prepare(self, seed: int, subsample: float) -> dict[str, Any]:
        """Build the shards of one model."""
        started = time.monotonic()
        self._release()
        self.plan = None
        self._kept = []
        for _ in range(MAX_RECOVERIES):
            try:
                self.plan = self._planned(seed, subsample)
                self._build()
                break
            except WorkerLost as lost:
                self._await_notice(str(lost))
        assert self.plan is not None
        self.facts["seconds_building"] += time.monotonic() - started
        return self._described()

    def mine(self, model: _core.Model) -> dict[str, Any]:
        """Add the triplets of neighbors under a model, for a mining round."""
        started = time.monotonic()
        assert self.plan is not None and self.codes is not None
        plan = self.plan
        counts = _check_counts(plan.rows.n_rows, _worker.MINED)
        for _ in range(MAX_RECOVERIES):
            try:
                found = self._neighbors(plan.rows, plan.codes, counts, model)
                self._release()
                self.plan = Plan(
                    plan.rows, plan.codes, plan.features, plan.ranges, plan.n_triplets, plan.facts,
                    [*plan.sources, ("neighbors", found, counts, model)], plan.held_out,
                )  # fmt: skip
                self._build()
                break
            except WorkerLost as lost:
                self._await_notice(str(lost))
        self.facts["seconds_building"] += time.monotonic() - started
        return self._described()

    def ask(self, request: bytes) -> list[bytes]:
        """One round: the replies of all shards, in their order."""
        started = time.monotonic()
        replies: list[bytes] = self.client.sync(self._ask_all, request)
        self.facts["seconds_waiting"] += time.monotonic() - started
        self.facts["rounds"] += 1
        self.facts["bytes_sent"] += len(request) * len(replies)
        self.facts["bytes_received"] += sum(len(reply) for reply in replies)
        return replies

    def recover(self, reason: str) -> None:
        """Build all shards again on the workers that remain."""
        started = time.monotonic()
        self.facts["recoveries"] += 1
        if self.facts["recoveries"] > MAX_RECOVERIES:
            raise WorkerLost(f"workers were lost {MAX_RECOVERIES} times; the last time: {reason}")
        for _ in range(MAX_RECOVERIES):
            self._release()
            self._await_notice(reason)
            try:
                self._build()
                self.facts["seconds_building"] += time.monotonic() - started
                return
            except WorkerLost as lost:
                reason = str(lost)
        raise WorkerLost(f"workers were lost {MAX_RECOVERIES} times; the last time: {reason}")

    def progress(self, facts: dict[str, Any]) -> None:
        """What the coordinator counts after each iteration."""
        self.facts.update(facts)
        if self.on_progress is not None:
            self.on_progress(self.facts)

    def close(self) -> None:
        """Release all that is on the workers."""
        self._release()
        self.plan = None
        self._kept = []
        self._sums = None

    # -- rounds ---------------------------------------------------------------------------------------------------------------

    async def _ask_all(self, request: bytes) -> list[bytes]:
        asked = [self._ask_one(address, shard.key, request) for address, shard in self.shards]
        replies = await asyncio.gather(*asked, return_exceptions=True)
        failed = [reply for reply in replies if isinstance(reply, BaseException)]
        # What a shard says is wrong comes before a worker that is lost: it would happen again.
        for error in sorted(failed, key=lambda error: isinstance(error, WorkerLost)):
            raise error
        return replies  # type: ignore[return-value]

    async def _ask_one(self, address: str, key: str, request: bytes) -> bytes:
        try:
            reply = await asyncio.wait_for(self._message(address, key, request), self.timeout)
        except asyncio.TimeoutError:
            raise WorkerLost(f"{address} did not answer in {self.timeout:g} s") from None
        except OSError as error:  # CommClosedError is one
            raise WorkerLost(f"{address} cannot be reached: {error}") from None
        if "missing" in reply:
            raise WorkerLost(f"{address} does not have {key} anymore")
        return bytes(reply["reply"])

    async def _message(self, address: str, key: str, request: bytes) -> Any:
        rpc = self.client.rpc(address) if self.direct.get(address, True) else ProxyRPC(self.client.scheduler, address)
        return await rpc.hdsl_ask(key=key, request=request)

    def _find_routes(self, addresses: set[str]) -> None:
        """Messages go through the scheduler where a worker cannot be reached directly."""

        async def reach(address: str) -> bool:
            try:
                await asyncio.wait_for(self.client.rpc(address).identity(), min(self.timeout, 10.0))
            except (OSError, asyncio.TimeoutError):
                return False
            return True

        async def all_of() -> list[bool]:
            return list(await asyncio.gather(*(reach(address) for address in unknown)))

        unknown = sorted(addresses - self.direct.keys())
        if unknown:
            self.direct.update(zip(unknown, self.client.sync(all_of)))

    # -- workers that are lost --------------------------------------------------------------------------------------------------

    def _await_notice(self, reason: str) -> None:
        """Wait until Dask has noticed which workers are gone, and check that no data is gone for good."""
        deadline = time.monotonic() + self.timeout
        suspects = {address for address, _ in self.shards} | self._asked
        while time.monotonic() < deadline:
            known = set(workers_of(self.client, self.timeout))
            gone = [address for address in suspects & known if not self._answers(address)]
            if not gone:
                break
            time.sleep(0.1)
        else:
            raise WorkerLost(f"{reason}; the scheduler still lists that worker after {self.timeout:g} s")
        self.direct = {}
        # The scheduler tells the client about lost data after it has told about the worker.
        time.sleep(0.1)
        self.check_lost()

    def check_lost(self) -> None:
        """Raise an error that names input that is gone for good."""
        planned = None if self.plan is None else self.plan.rows
        for blocks in (self.rows, self.valid, planned):
            if blocks is not None:
                blocks.check_lost()

    @property
    def _asked(self) -> set[str]:
        return set(self.direct)

    def _answers(self, address: str) -> bool:
        async def ping() -> bool:
            rpc = self.client.rpc(address) if self.direct.get(address, True) else ProxyRPC(self.client.scheduler, address)
            try:
                await asyncio.wait_for(rpc.identity(), min(self.timeout, 5.0))
            except (OSError, asyncio.TimeoutError):
                return False
            return True

        return bool(self.client.sync(ping))

    # -- shards -----------------------------------------------------------------------------------------------------------------

    def _release(self) -> None:
        for _, shard in self.shards:
            shard.release()
        self.shards = []

    def _planned(self, seed: int, subsample: float) -> Plan:
        rows, codes, source = self.rows, self.codes, self.source
        if subsample < 1 and source.kind != "list":
            assert self.classes is not None and codes is not None
            sample = _core.sampled_rows(self.classes, subsample, seed).astype(np.int64)
            rows, codes = self.rows.select(sample, "subsample"), codes[sample]
        if source.kind != "list":
            assert codes is not None
            _check_classes(codes)
        if subsample < 1 and source.kind == "list":
            assert source.triplets is not None
            columns, weights = _core.sampled_anchors(
                (source.triplets, source.weights), rows.n_rows, subsample, seed
            )
            source = Source("list", triplets=list(columns), weights=weights)
        features, facts = self._column_sums(rows)
        plan = Plan(rows, codes, features, [], 0, facts, held_out=self.held_out)
        if rows is not self.rows:
            plan.facts = {**facts, "n_rows": rows.n_rows, "codes": codes}
        numbers = self._sources(plan, source, seed)
        plan.n_triplets = int(numbers.sum())
        if source.kind == "list":
            plan.facts = {**plan.facts, "given": self.n_given}
        else:
            plan.facts = {**plan.facts, "given": None}
        if plan.n_triplets == 0:
            raise ValueError("there are no triplets to learn from.")
        plan.ranges = cut(numbers, self.n_shards)
        if source.kind == "list":
            plan.sources = [("lists", split_by_anchor(source.triplets, source.weights, plan.ranges))]
        return plan

    def _sources(self, plan: Plan, source: Source, seed: int) -> NDArray[np.int64]:
        """Set the sources of a plan; returns the number of triplets of each row."""
        n_rows = plan.rows.n_rows
        if source.kind == "random":
            assert plan.codes is not None
            plan.sources = [("random", plan.codes, source.counts[0], seed)]
            alone = np.bincount(plan.codes)[plan.codes] < 2
            return np.where(alone, 0, source.counts[0])
        if source.kind == "neighbors":
            counts = _check_counts(n_rows, (source.counts[0], source.counts[1]))
            found = self._neighbors(plan.rows, plan.codes, counts, None)
            plan.sources = [("neighbors", found, counts, None)]
            name = token()
            numbers = self._gather(
                [
                    self.client.submit(_worker.numbers_of_triplets, lists, key=f"hdsl-count-{name}-{at}", pure=False)
                    for at, (_, lists) in enumerate(found)
                ]
            )
            return np.concatenate(numbers)
        assert source.triplets is not None
        return np.bincount(source.triplets[0], minlength=n_rows)

    def _column_sums(self, rows: Blocks) -> tuple[Any, dict[str, Any]]:
        """The order of features, and facts about the preprocessed rows."""
        if rows is self.rows and self._sums is not None:
            return self._sums
        first = (np.empty(0, dtype=np.uint32), np.empty(0), 0.0, 0)
        last = rows.fold(_worker.column_sums, first, self.preprocessor, what="columns")
        features, sums, squares, n_values = self._gather([last])[0]
        order = _core.feature_order(rows.n_features, features, sums)
        facts = {"n_columns": len(features), "squares": squares, "nnz": n_values}
        if rows is self.rows:
            self._sums = (order, facts)
        return order, facts

    def _neighbors(
        self, rows: Blocks, codes: NDArray[np.uint32] | None, counts: tuple[int, int], model: Any
    ) -> list[tuple[int, Future]]:
        """For each block, the lists of neighbors of its rows among the rows of all blocks: exact, with the same ties as a
        search among all rows."""
        client, name, starts = self.client, token(), rows.starts
        n_threads = self.options["n_threads"]
        shared = self._shared(codes)
        shared_model = None if model is None else self._shared(model)
        found = []
        for q, queries in enumerate(rows.futures):
            parts = [
                client.submit(
                    _between,
                    queries, int(starts[q]), items, int(starts[i]), shared, counts, self.preprocessor, shared_model,
                    n_threads, key=f"hdsl-mine-{name}-{q}-{i}", pure=False,
                )  # fmt: skip
                for i, items in enumerate(rows.futures)
            ]
            merged = client.submit(
                _worker.merged_neighbors, counts, *parts, key=f"hdsl-merge-{name}-{q}", pure=False
            )
            found.append((int(starts[q]), keep(parts, merged)))
        self._await([lists for _, lists in found])
        # Lists of neighbors that are lost with a worker are computed again from these.
        self._kept += [shared] if shared_model is None else [shared, shared_model]
        return found

    def _build(self) -> None:
        """Build the shards of the plan, on the workers there are."""
        plan, client, name = self.plan, self.client, token()
        assert plan is not None
        self._release()
        self.check_lost()
        for at, source in enumerate(plan.sources):
            if source[0] == "neighbors" and any(lists.status == "cancelled" for _, lists in source[1]):
                found = self._neighbors(plan.rows, plan.codes, *source[2:])
                plan.sources[at] = ("neighbors", found, *source[2:])
        workers = workers_of(client, self.timeout)
        places = self._places(plan, list(workers))
        self._check_memory(plan, places, workers)
        starts, preprocessor = plan.rows.starts, self.preprocessor
        codes = None
        if any(source[0] == "random" for source in plan.sources):
            codes = self._shared(plan.codes)
        features = self._shared(plan.features)
        valid = None
        if self.valid is not None:
            valid = [
                client.submit(_worker.prepared, block, preprocessor, key=f"hdsl-validation-{name}-{at}", pure=False)
                for at, block in enumerate(self.valid.futures)
            ]
        held_out: list[Any] = [None] * len(plan.ranges)
        if plan.held_out is not None:
            listed, weights = plan.held_out
            held_out = split_by_anchor(listed, weights, plan.ranges)
        shards, rows_of = [], []
        for at, (own, address) in enumerate(zip(plan.ranges, places)):
            sources = [self._source_of(source, at, own, plan, codes) for source in plan.sources]
            held = None if held_out[at] is None else self._scattered(held_out[at][:4])
            rows = client.submit(
                _rows_of_shard, sources, own, held, key=f"hdsl-name-rows-{name}-{at}", pure=False
            )
            pieces = [
                client.submit(
                    _worker.pick, block, int(starts[p]), rows, preprocessor,
                    key=f"hdsl-exchange-{name}-{at}-{p}", pure=False,
                )  # fmt: skip
                for p, block in enumerate(plan.rows.futures)
            ]
            shard = client.submit(
                _worker.make_shard, pieces, rows, own, plan.rows.n_rows, features, sources, self.options, valid,
                held, workers=[address], allow_other_workers=False, key=f"hdsl-shard-{name}-{at}", pure=False,
            )  # fmt: skip
            shards.append((address, shard))
            if plan.sources[0][0] == "lists" and "base_margin" not in plan.facts:
                rows_of.append((rows, pieces))
            # The scheduler releases what only the shard needs as soon as it is built.
            keep([rows, *pieces, features, *(valid or []), *sources, held], shard)
            del rows, pieces
        self.shards = shards
        self._find_routes(set(places))
        self._await([shard for _, shard in shards], set(places))
        facts = [
            client.submit(_worker.shard_facts, shard, workers=[address], key=f"hdsl-facts-{name}-{at}", pure=False)
            for at, (address, shard) in enumerate(shards)
        ]
        of_shards: list[Any] = self._gather(facts, set(places))
        self.facts["shard_bytes"] = [nbytes for _, _, nbytes in of_shards]
        plan.facts = {
            **plan.facts,
            "features": plan.features,
            "n_triplets": sum(n for n, _, _ in of_shards),
            "total_weight": sum(weight for _, weight, _ in of_shards),
        }
        if "base_margin" not in plan.facts:
            plan.facts["base_margin"] = self._base_margin(plan, [n for n, _, _ in of_shards], rows_of)

    def _source_of(self, source: Any, at: int, own: tuple[int, int], plan: Plan, codes: Any) -> Any:
        """One source of triplets for one shard, with the futures it needs."""
        if source[0] == "random":
            return ("random", codes, *source[2:])
        if source[0] == "lists":
            return self._scattered(("list", *source[1][at][:4]))
        # Of the lists of all blocks, those of the own rows.
        bounds = [*(first for first, _ in source[1]), plan.rows.n_rows]
        parts = [
            (first, lists)
            for (first, lists), end in zip(source[1], bounds[1:])
            if first < own[1] and end > own[0]
        ]
        return ("neighbors", parts)

    def _shared(self, value: Any) -> Future:
        """Something that tasks on all workers need, sent to each of them once."""
        return self._scattered(value, broadcast=True)

    def _scattered(self, value: Any, broadcast: bool = False) -> Future:
        """Something large that tasks need, sent once."""
        try:
            return self.client.scatter([value], hash=False, broadcast=broadcast)[0]
        except (OSError, TimeoutError, asyncio.TimeoutError, KeyError) as error:
            raise WorkerLost(f"data could not be sent to the workers: {error}") from error

    def _base_margin(self, plan: Plan, numbers: list[int], rows_of: list[Any]) -> float:
        """The mean of |<x_a, x_n> - <x_a, x_f>| over a sample of the triplets."""
        every = max(1, -(-plan.n_triplets // SAMPLE))
        name, client = token(), self.client
        asked, count = [], 0
        kind = plan.sources[0][0]
        if kind == "lists":
            for at, part in enumerate(plan.sources[0][1]):
                sampled = np.flatnonzero(part[4] % every == 0)
                count += len(sampled)
                rows, pieces = rows_of[at]
                asked.append(
                    client.submit(
                        _worker.listed_margins, pieces, rows, [column[sampled] for column in part[:3]],
                        key=f"hdsl-base-{name}-{at}", pure=False,
                    )  # fmt: skip
                )
            total = sum(self._gather(asked))
        else:
            offset = 0
            for at, ((address, shard), n) in enumerate(zip(self.shards, numbers)):
                asked.append(
                    client.submit(
                        _worker.base_margins, shard, every, offset, workers=[address],
                        key=f"hdsl-base-{name}-{at}", pure=False,
                    )  # fmt: skip
                )
                offset += n
            answers = self._gather(asked, {address for address, _ in self.shards})
            total, count = sum(answer[0] for answer in answers), sum(answer[1] for answer in answers)
        return total / max(count, 1)

    def _described(self) -> dict[str, Any]:
        assert self.plan is not None
        return dict(self.plan.facts)

    # -- places ---------------------------------------------------------------------------------------------------------------

    def _places(self, plan: Plan, workers: list[str]) -> list[str]:
        """A worker for each shard: as many shards on each as on any other, close to their own rows where that is possible."""
        starts = plan.rows.starts
        holders = self.client.who_has(plan.rows.futures)
        most = -(-len(plan.ranges) // len(workers))
        load = dict.fromkeys(sorted(workers), 0)
        places = []
        for start, stop in plan.ranges:
            near = dict.fromkeys(load, 0)
            for at, future in enumerate(plan.rows.futures):
                common = min(stop, starts[at + 1]) - max(start, starts[at])
                if common > 0:
                    for address in holders.get(future.key, ()):
                        if address in near:
                            near[address] += int(common)
            free = [address for address in load if load[address] < most]
            best = max(free, key=lambda address: (near[address], -load[address]))
            load[best] += 1
            places.append(best)
        return places

    def _check_memory(self, plan: Plan, places: list[str], workers: dict[str, Any]) -> None:
        """Refuse shards that do not fit on their workers."""
        per_row = plan.rows.n_values / max(plan.rows.n_rows, 1)
        needed: dict[str, float] = {}
        for own, address in zip(plan.ranges, places):
            needed[address] = needed.get(address, 0.0) + self._estimate(plan, own, per_row)
        for address, size in sorted(needed.items()):
            limit = self.options["memory"]
            if limit is None:
                total = workers[address].get("memory_limit") or 0
                if not total:
                    continue
                used = (workers[address].get("metrics") or {}).get("memory", 0)
                limit = max(0, total - used)
            if size > limit:
                raise MemoryError(
                    f"the fit needs about {_size(size)} on worker {address}, which has {_size(limit)} left "
                    f"({len(places)} shards on {len(needed)} workers: "
                    + ", ".join(f"{_size(n)} on {worker}" for worker, n in sorted(needed.items())[:8])
                    + "). Add workers, mine fewer triplets, or set memory to the bytes of a worker to try anyway."
                )

    def _estimate(self, plan: Plan, own: tuple[int, int], per_row: float) -> float:
        """About how many bytes a shard takes while it is built and asked."""
        n_own, n_rows = own[1] - own[0], plan.rows.n_rows
        triplets = plan.n_triplets * len(plan.sources) / len(plan.ranges)
        named = min(n_rows, n_own + 2 * triplets)
        return 1e6 + named * (PER_ROW + per_row * PER_VALUE) + triplets * PER_TRIPLET + 40.0 * plan.facts["n_columns"]

    # -- waiting ----------------------------------------------------------------------------------------------------------------

    def _await(self, futures: list[Future], pinned: set[str] | None = None) -> None:
        """Wait for tasks. Those that are pinned to workers fail if one of these is gone, and all fail if no worker of the
        cluster works on anything for `timeout` seconds: what they need may have been lost without notice."""
        pending, active = futures, time.monotonic()
        while pending:
            try:
                with self.client.as_current():
                    wait(pending, timeout=HEARTBEAT)
            except (TimeoutError, CancelledError):
                pass
            for future in pending:
                if future.status == "error":
                    self._raise(future)
                # What is "lost" is computed again; what is "cancelled" cannot be.
                if future.status == "cancelled":
                    self.check_lost()
                    raise WorkerLost(f"the result of {future.key} is gone")
            pending = [future for future in pending if future.status != "finished"]
            if pending:
                known = set(workers_of(self.client, self.timeout))
                for address in (pinned or set()) - known:
                    raise WorkerLost(f"{address} is gone")
                if any(self.client.processing().values()):
                    active = time.monotonic()
                elif time.monotonic() > active + self.timeout:
                    raise WorkerLost(f"no worker has worked on {pending[0].key} for {self.timeout:g} s")

    def _raise(self, future: Future) -> None:
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise MemoryError(
                f"{error} A worker that is killed again and again by the same task usually has too little memory."
            ) from error
        raise error

    def _gather(self, futures: list[Future], pinned: set[str] | None = None) -> list[Any]:
        self._await(futures, pinned)
        try:
            return _worker.aligned(list(self.client.gather(futures)))
        except Exception as error:
            # The result was lost between the two calls.
            if any(future.status != "finished" for future in futures):
                raise WorkerLost(f"a result is gone: {error}") from error
            raise


#: Bytes of a shard per row, stored value and triplet: see `Cluster._estimate`.
PER_ROW, PER_VALUE, PER_TRIPLET = 100.0, 54.0, 80.0


def _between(
    queries: Any, q: int, items: Any, i: int, codes: Any, counts: Any, preprocessor: Any, model: Any, n_threads: int
) -> Any:
    return _worker.neighbors_between((queries, q), (items, i), codes, counts, preprocessor, model, n_threads)


def _rows_of_shard(sources: list[Any], own: tuple[int, int], held_out: Any) -> Any:
    return _worker.rows_of_shard(sources, own, held_out)


def cut(numbers: NDArray[np.int64], n_parts: int) -> list[tuple[int, int]]:
    """Ranges of rows with about as many triplets each, as the library's `Anchors::cut`. Each has triplets.

    >>> cut(np.array([2, 2, 0, 4, 0]), 2)
    [(0, 2), (2, 5)]
    >>> cut(np.array([0, 9, 0]), 3)
    [(0, 3)]
    """
    starts = np.concatenate([[0], np.cumsum(numbers)])
    total, n_rows = int(starts[-1]), len(numbers)
    bounds = [0]
    for part in range(1, n_parts):
        bounds.append(min(int(np.searchsorted(starts, part * total // n_parts)), n_rows))
    bounds.append(n_rows)
    # A part without triplets belongs to the one before it, or after it if it is the first.
    kept = [0]
    for bound in bounds[1:]:
        if starts[bound] > starts[kept[-1]]:
            kept.append(bound)
    kept[-1] = n_rows
    return list(zip(kept, kept[1:]))


def split_by_anchor(
    triplets: Any, weights: NDArray[np.float64] | None, ranges: list[tuple[int, int]]
) -> list[Any]:
    """The triplets of each range of anchors, in the order of the list: three columns, weights, numbers in the list."""
    out = []
    for start, stop in ranges:
        which = np.flatnonzero((triplets[0] >= start) & (triplets[0] < stop))
        columns = [np.asarray(column)[which] for column in triplets]
        out.append((*columns, None if weights is None else weights[which], which))
    return out


def _check_classes(codes: NDArray[np.uint32]) -> None:
    sizes = np.bincount(codes)
    if (sizes > 0).sum() < 2:
        raise ValueError("every row has the same label, expected at least two classes.")
    if sizes.max() < 2:
        raise ValueError("no two rows share a label, so no row can be nearer to its own class.")


def _check_counts(n_rows: int, counts: tuple[int, int]) -> tuple[int, int]:
    for what, asked in zip(("targets", "impostors"), counts):
        if asked >= n_rows:
            raise ValueError(f"there are {n_rows} rows, too few for {asked} {what} per row.")
    return counts


def _size(n_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"
