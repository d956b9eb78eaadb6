"""Long suites can be stopped and gone on with: `pytest --resume FILE`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest


def _sources() -> str:
    """Changes with any file of the program, the tests or the benchmarks."""
    top = Path(__file__).resolve().parents[1]
    digest = hashlib.sha1()
    for folder in ("src", "tests", "bench"):
        for path in sorted((top / folder).rglob("*.py")):
            digest.update(path.relative_to(top).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class Resume:
    """Writes down each test that passed; drops the list once all did, or the sources changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources = _sources()
        self._passed: set[str] = set()
        if path.is_file():
            first, *names = path.read_text("utf-8").splitlines()
            self._passed = set(names) if first == self._sources else set()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        before = [item for item in items if item.nodeid in self._passed]
        if not before:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(self._sources + "\n", encoding="utf-8")
        items[:] = [item for item in items if item.nodeid not in self._passed]
        config.hook.pytest_deselected(items=before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            self._path.unlink(missing_ok=True)
