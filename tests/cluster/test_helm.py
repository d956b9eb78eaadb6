"""Who is dead can be seen on its own host, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from geomi.cluster import helm
from geomi.cluster.helm import Process


def process(pid: int) -> Process:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    boot, space, _ = helm.this_process().born.split(" ")
    return replace(helm.this_process(), pid=pid, born=f"{boot} {space} {words[19]}")


def test_a_process_that_was_killed_is_dead_before_its_parent_asks_how_it_ended() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None and child.stdin is not None
    with child.stdout, child.stdin:
        child.stdout.readline()
        one = process(child.pid)
        assert not one.is_dead
        assert not replace(one, host="elsewhere").is_dead
        child.kill()
        child.stdout.read()  # its end is closed
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        assert one.is_dead
        assert not replace(one, host="elsewhere").is_dead
        child.wait()
        assert one.is_dead
