"""The Ray engine: agents as actors on the nodes of a Ray cluster, heavy steps as its tasks.

An actor holds an agent process of its node as the local engine does, so what runs is the same
program. Actors end with the driver of the crawl; an agent whose actor is gone ends by itself.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from geomi.cluster.engine import Item, Orders, Placed, Result
from geomi.cluster.local import Process, spawned
from geomi.cluster.node import ARCHIVE, NAME, RESOURCE
from geomi.errors import InternalError, OperatorError, ResourceError

# Ray asks its vendor's server whether usage may be reported, unless told not to.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

_ANSWER_S = 10.0  # what an actor has to answer; later it counts as running, unknown to us
_LOOK_S = 0.5  # between two looks whether an agent has ended
_GONE = -9  # the exit code of an agent whose actor or node is gone
_DEATHS = 2  # of workers that one item may outlive
_EXTRA = "the Ray engine needs the extra geomi[cluster]: pip install 'geomi[cluster]'"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CPUS = 0.01  # an agent waits most of its time; nodes are filled evenly, not by cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a cluster. Several may share a machine."""

    name: str
    machine: str
    address: str
    cpus: float
    is_alive: bool


class Seat:
    """The actor: one agent process on the node where Ray placed it."""

    def __init__(self, orders: Orders) -> None:
        self._process = Process(spawned(), orders)

    def outlive(self) -> int:
        """Returns when the process has ended: its exit code."""
        self._process.wait(None)
        code = self._process.ended()
        assert code is not None
        return code

    def ask_to_stop(self) -> None:
        self._process.ask_to_stop()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout_s: float) -> bool:
        return self._process.wait(timeout_s)


class RayEngine:
    """Connects to a running Ray cluster; `geomi cluster start` makes one."""

    def __init__(self, address: str) -> None:
        """`address` is HOST:PORT, or `auto` for the cluster of this machine."""
        try:
            import ray
        except ImportError as error:
            raise OperatorError(_EXTRA) from error
        self._ray: Any = ray
        must_answer(address)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(
                    address=address, namespace="geomi", log_to_driver=True,
                    logging_level=logging.ERROR, configure_logging=True,
                )  # fmt: skip
        except (RuntimeError, ConnectionError, ValueError) as error:
            first = " ".join(str(error).split())
            if first.startswith("Version mismatch"):
                raise OperatorError(f"the Ray cluster at {address} is another Ray: {first[:300]}"
                                    ) from error  # fmt: skip
            raise OperatorError(f"no Ray cluster at {address}: {first[:300]}") from error

    @property
    def nodes(self) -> list[Node]:
        """The nodes, those that are gone too."""
        return [
            Node(
                name=_name_of(node),
                machine=node["NodeManagerHostname"],
                address=f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}",
                cpus=node["Resources"].get("CPU", 0.0),
                is_alive=node["Alive"],
            )
            for node in self._ray.nodes()
        ]

    @property
    def machines(self) -> set[str]:
        """Names of the machines that have a live node."""
        return {node.machine for node in self.nodes if node.is_alive}

    def place(self, orders: Orders) -> Placed:
        ray = self._ray
        # One call waits for the end of the process, one may ask it to stop, one may wait for that.
        seat = ray.remote(num_cpus=_CPUS, max_restarts=0, max_concurrency=3)(Seat)
        try:
            actor = seat.options(scheduling_strategy="SPREAD").remote(orders)
        except ray.exceptions.RayError as error:
            raise ResourceError(f"Ray: {_first_line(error)}") from error
        return OnNode(ray, actor)

    def run_tasks(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, at: str = ""
    ) -> Iterator[tuple[Item, Result]]:
        """At most twice as many items as the cluster has cores are under way."""
        ray = self._ray
        task = ray.remote(max_retries=_DEATHS, num_cpus=1)(work)
        if at:
            task = task.options(scheduling_strategy=self._only_at(at), num_cpus=_CPUS)
        source = iter(items)
        under_way: dict[Any, Item] = {}
        while True:
            most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
            for item in source:
                under_way[task.remote(item)] = item
                if len(under_way) >= most:
                    break
            if not under_way:
                return
            done, _ = ray.wait(list(under_way))
            for future in done:
                item = under_way.pop(future)
                try:
                    yield item, ray.get(future)
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause or error) from None
                except ray.exceptions.WorkerCrashedError as error:
                    raise InternalError(f"{work.__name__} of {item!r}: workers die") from error
                except ray.exceptions.RayError as error:  # its node is gone
                    raise ResourceError(f"Ray: {_first_line(error)}") from error

    def _only_at(self, name: str) -> Any:
        """What makes Ray do a task on one node. ResourceError: there is no such node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for one in self._ray.nodes():
            if one["Alive"] and _name_of(one) == name:
                return NodeAffinitySchedulingStrategy(node_id=one["NodeID"], soft=False)
        raise ResourceError(f"no node {name} in the Ray cluster")

    def close(self) -> None:
        """Leaves the cluster; actors of this crawl end."""
        self._ray.shutdown()


class OnNode:
    """One agent, through its actor. What cannot be asked counts as running, until Ray says not.

    One call comes back when the agent has ended, or fails when its actor has: to look whether it
    did asks nobody. (A question to the actor cost 0.4 ms.)
    """

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._code: int | None = None
        self._look_at = 0.0
        self._end = actor.outlive.remote()

    def ended(self) -> int | None:
        now = time.monotonic()
        if self._code is None and now >= self._look_at:
            self._look_at = now + _LOOK_S
            if self._ray.wait([self._end], timeout=0)[0]:
                self._code = self._ask(self._end, None)
        return self._code

    def ask_to_stop(self) -> None:
        self._ask(self._actor.ask_to_stop.remote(), None)

    def kill(self) -> None:
        self._ask(self._actor.kill.remote(), None)
        self._ray.kill(self._actor)

    def wait(self, timeout_s: float) -> bool:
        return bool(self._ask(self._actor.wait.remote(timeout_s), False, timeout_s + _ANSWER_S))

    def _ask(self, future: Any, unknown: Any, timeout_s: float = _ANSWER_S) -> Any:
        try:
            return self._ray.get(future, timeout=timeout_s)
        except self._ray.exceptions.GetTimeoutError:
            return unknown
        except self._ray.exceptions.RayActorError:
            return _GONE


def must_answer(address: str) -> None:
    """OperatorError where nobody listens. (Ray itself would try for minutes.)"""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except ValueError:
        raise OperatorError(f"cluster.address: {address}: wanted HOST:PORT, or auto") from None
    except OSError as error:
        raise OperatorError(f"no Ray cluster at {address}: {error.strerror or error}") from error


def _name_of(one: dict[str, Any]) -> str:
    """What geomi calls a node: the name it was started with, or its machine's."""
    for resource in one["Resources"]:
        if resource.startswith(RESOURCE):
            return str(resource.removeprefix(RESOURCE))
    return str(one["NodeManagerHostname"])


def start_node(
    *, bind: str, port: int, join: str, cpus: int | None, name: str = "", archive: str = ""
) -> str:
    """Starts a node of this machine, the head unless it is to join one; what Ray said."""
    words = ["start", "--node-ip-address", bind, "--disable-usage-stats"]
    if join:
        words += ["--address", join]
    else:
        words += ["--head", "--port", str(port), "--include-dashboard=false"]
    if cpus is not None:
        words += ["--num-cpus", str(cpus)]
    more: dict[str, str] = {}
    if name:
        more[NAME] = name
        words += ["--resources", json.dumps({f"{RESOURCE}{name}": 1})]
    if archive:
        more[ARCHIVE] = os.path.abspath(archive)
    return _ray_command(words, more)


def stop_nodes() -> str:
    """Ends all Ray processes of this machine."""
    return _ray_command(["stop"])


def _ray_command(words: list[str], more: Mapping[str, str] = MappingProxyType({})) -> str:
    command = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **more}
    )
    said = _COLOURS.sub("", f"{done.stdout}\n{done.stderr}").strip()
    if "No module named 'ray'" in said:
        raise OperatorError(_EXTRA)
    if done.returncode:
        last = said.splitlines()[-1] if said else f"exit code {done.returncode}"
        raise OperatorError(f"ray {words[0]}: {last[:300]}")
    return said


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
