from __future__ import annotations

from geomi.frontier.traps import Templates, Valves, template_of


def test_a_segment_that_follows_itself_too_often_is_a_trap() -> None:
    valves = Valves()
    assert valves.refusal("http://a/x/x/x/y", 1) == ""
    assert valves.refusal("http://a/x/x/x/x/y/z/q", 1) == "trap:path"
    assert valves.refusal("http://a/a/b/a/b/a/b/a/b/", 1) == "trap:path"
    assert valves.refusal("http://a/a/b/c/a/b/c/a/b/c/a/b/c", 1) == "trap:path"


def test_honest_deep_paths_are_none() -> None:
    valves = Valves()
    for url in (
        "http://a/2024/01/01/01/index.html",
        "http://a/java.base/java/util/concurrent/locks/class-use/Lock.html",
        "http://a/a//b//c//d//e",
        "http://a/en/en/docs/en/docs/home/index.html",
    ):
        assert valves.refusal(url, 10) == "", url


def test_depth_and_parameters_have_their_valves_and_may_be_opened() -> None:
    valves = Valves()
    query = "&".join(f"a{n}=1" for n in range(31))
    assert valves.refusal("http://a/", 51) == "trap:depth"
    assert valves.refusal(f"http://a/?{query}", 1) == "trap:query"
    opened = Valves(depth=0, segments=0, parameters=0)
    assert opened.refusal(f"http://a/x/x/x/x/x/x/x/x?{query}", 99) == ""


def test_a_calendar_fills_its_template_and_no_other() -> None:
    templates = Templates(Valves(template_pages=10), pages=0)
    calendar = [templates.refusal(f"http://a/cal?year={y}&month=1") for y in range(12)]
    assert calendar == [""] * 10 + ["trap:template"] * 2
    assert templates.refusal("http://a/news?id=1") == ""


def test_a_site_may_be_full() -> None:
    templates = Templates(Valves(site_pages=3), pages=2)
    assert [templates.refusal(f"http://a/{n}x{n}") for n in range(3)] == [
        "",
        "trap:site",
        "trap:site",
    ]


def test_digits_and_values_do_not_make_a_template() -> None:
    assert template_of("http://a/b12/c?x=1&y=2") == template_of("http://a/b7/c?x=9&y=")
    assert template_of("http://a/b") != template_of("http://a/c")
