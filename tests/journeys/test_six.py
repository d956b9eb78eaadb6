"""IPv6 and https in the whole program: names with AAAA alone, both families, literals, bad TLS."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PLAIN
from journeys.crawling import FAST, geomi, must_be_sound, outcomes, settings, to_world

SHARES = {
    **PLAIN, "habit.https": 0.7, "secure": 0.2, "habit.six": 0.25, "habit.dual": 0.2,
    "habit.literal": 0.3, "tls.expired": 0.15, "tls.name": 0.15, "tls.self": 0.15,
}  # fmt: skip


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on loopback")


def with_six(running: Running) -> list[str]:
    return [*to_world(running), "--allow-network", "::1", *settings(
        *FAST, "crawl.seen=exact", f"fetch.ca_file={running.ca_file}",
    )]  # fmt: skip


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_every_family_scheme_and_literal_is_visited_completely(tmp_path: Path, seed: int) -> None:
    with serve(Params(seed=seed, sites=24, pages=5, shares=SHARES)) as running:
        seeds = running.seeds(copies=True)
        geomi("crawl", tmp_path / "c", *seeds, *with_six(running), "--agents", "2", "--json")
        wanted = {u: one.outcome for u, one in reachable(running.world, seeds).items()}
        assert outcomes(tmp_path / "c") == wanted
    must_be_sound(tmp_path / "c")
