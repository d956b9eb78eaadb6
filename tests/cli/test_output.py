from __future__ import annotations

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.cli import output


@given(st.text(st.characters()))
def test_plain_text_holds_nothing_that_a_terminal_acts_on(text: str) -> None:
    shown = output.plain(text)
    shown.encode()
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown)
    if text.isprintable() and text.isascii():
        assert shown == text


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "ascii"])
def test_json_is_one_line_in_any_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    value = {"b": "가 é 🕷 \x7f\x85\u2028\ud800\n\x1b", "a": None}
    output.print_json_line(value)
    output.print_line("가 é 🕷 \x1b")
    sys.stdout.flush()
    first, second = raw.getvalue().decode(encoding).splitlines()
    assert json.loads(first) == value
    assert list(json.loads(first)) == ["b", "a"]
    assert second.endswith("\\x1b")


def test_a_table_in_a_pipe_is_aligned_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(
        ("name", "n", "is", "x"),
        [("가나", 1234567, True, None), ("a" * 200, 1, False, "[bold]x"), ("b\n", -2.5, True, "")],
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name" + " " * 198 + "        n  is   x"
    assert lines[1] == "가나" + " " * 198 + "1,234,567  yes"
    assert lines[2] == "a" * 200 + "          1  no   [bold]x"
    assert lines[3] == "b\\n" + " " * 204 + "-2.5  yes"


def test_a_table_on_a_terminal_shows_all_and_takes_nothing_for_markup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    output.table(("url", "n"), [("[bold]" + "x" * 60, 7)])
    shown = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue())
    assert "[bold]" in shown
    assert shown.count("x") == 60
    assert max(map(len, shown.splitlines())) <= 40


def test_a_table_without_rows_has_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("a", "b"), [])
    assert capsys.readouterr().out == "a  b\n"


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3.2 * 2**20, "3.2 MiB"),
     (2**60, "1024.0 PiB")],
)  # fmt: skip
def test_bytes_have_binary_units(size: float, shown: str) -> None:
    assert output.human_bytes(size) == shown


@pytest.mark.parametrize(
    ("time_s", "shown"),
    [(0.424, "0.42 s"), (12.3, "12 s"), (59.9, "1 min"), (185, "3 min 5 s"), (7800, "2 h 10 min"),
     (86_400 * 3 + 3600 * 4 + 5, "3 d 4 h"), (86_400, "1 d")],
)  # fmt: skip
def test_times_have_two_units(time_s: float, shown: str) -> None:
    assert output.human_seconds(time_s) == shown


def test_dates_are_utc_and_zero_is_never() -> None:
    assert output.human_time(1714953600) == "2024-05-06 00:00:00"
    assert output.human_time(0) == ""
