"""Long suites: what passed is not run again, until the sources change or all has passed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import resume as resuming
from resume import Resume

#: Stands in for pytest itself, which would count what is left out.
CONFIG: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


class Report:
    when = "call"

    def __init__(self, nodeid: str, *, passed: bool) -> None:
        self.nodeid = nodeid
        self.passed = passed


def left(path: Path, names: list[str]) -> tuple[Resume, list[str]]:
    resume = Resume(path)
    items = [Item(name) for name in names]
    resume.pytest_collection_modifyitems(CONFIG, items)  # type: ignore[arg-type]
    return resume, [item.nodeid for item in items]


def test_a_suite_goes_on_with_what_has_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "_sources", lambda: "one")
    path = tmp_path / "long-x"
    resume, first = left(path, ["a", "b", "c"])
    assert first == ["a", "b", "c"]
    resume.pytest_runtest_logreport(Report("a", passed=True))  # type: ignore[arg-type]
    resume.pytest_runtest_logreport(Report("b", passed=False))  # type: ignore[arg-type]
    resume.pytest_sessionfinish(1)
    resume, second = left(path, ["a", "b", "c"])
    assert second == ["b", "c"]
    monkeypatch.setattr(resuming, "_sources", lambda: "two")
    resume, changed = left(path, ["a", "b", "c"])
    assert changed == ["a", "b", "c"]
    resume.pytest_sessionfinish(0)
    assert not path.exists()
