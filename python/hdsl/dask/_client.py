"""The client of a cluster, and its workers."""

from __future__ import annotations

import time
import weakref
from typing import Any

from distributed import Client, get_client

from hdsl.dask._worker import ShardPlugin


#: Clients whose workers have our handler, present ones and those to come.
_known: weakref.WeakSet[Client] = weakref.WeakSet()


def checked_client(client: Client | None) -> Client:
    """The client given, or the current one, with our handler on its workers."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError("there is no Dask client; start one with distributed.Client, or pass client=.") from None
    if getattr(client, "asynchronous", False):
        raise ValueError("the client is asynchronous, expected one of Client(..., asynchronous=False).")
    if client.status != "running":
        raise ValueError(f"the client is {client.status}, expected a running one.")
    if client not in _known:
        client.register_plugin(ShardPlugin())
        _known.add(client)
    return client


def workers_of(client: Client, timeout: float) -> dict[str, Any]:
    """The workers by address, as the scheduler knows them now; waits for the first one."""
    deadline = time.monotonic() + timeout
    while True:
        info = client.scheduler_info(n_workers=-1)["workers"]
        alive = {address: facts for address, facts in info.items() if facts.get("status", "running") != "closed"}
        if alive:
            return alive
        if time.monotonic() > deadline:
            raise TimeoutError(f"the cluster has no workers, and none came in {timeout:g} s.")
        time.sleep(0.1)
