from __future__ import annotations

from geomi.world import Params, World
from geomi.world.chance import stream
from geomi.world.changes import DAY_S, History, Life


def world():
    return World(Params(seed=12, sites=10, pages=40, changes=True, changes_per_day=1.0))


def pages(world):
    for site in world.sites:
        for url in world.urls(site):
            yield site, url


def answer(world, url, at):
    host, _, path = url.partition("://")[2].partition("/")
    return world.answer(host, "/" + path, at=at)


def test_bytes_change_exactly_at_the_events():
    here = world()
    changed = 0
    for _, url in list(pages(here))[::7]:
        _, _, page = here.find(url)
        if page is None or page.role.content not in ("html", "text", "pdf") or page.to:
            continue
        events = here.changes(url, 40 * DAY_S)
        for time, letter in events[:6]:
            before, after = answer(here, url, time - 1e-6), answer(here, url, time)
            near = [t for t, _ in events if abs(t - time) < 1.0]
            if len(near) > 1:
                continue
            if letter == "D":
                assert (before.status, after.status) == (200, 404)
            elif letter == "A":
                assert (before.status, after.status) == (404, 200)
            else:
                assert before.body != after.body
                changed += 1
        assert answer(here, url, 0.0) == answer(here, url, 1e-9)
    assert changed > 10


def test_letters_alternate_and_times_grow():
    here = world()
    seen: set[str] = set()
    for _, url in pages(here):
        events = here.changes(url, 70 * DAY_S)
        assert events == sorted(events)
        letters = "".join(letter for _, letter in events)
        seen |= set(letters)
        alive = letters.replace("M", "")[:1] != "A"
        for letter in letters:
            assert alive is (letter != "A")
            alive = letter != "D"
    assert seen == {"A", "M", "D"}


def test_a_still_world_never_changes():
    still = World(Params(seed=12, sites=5))
    for _, url in pages(still):
        assert still.changes(url, 1e9) == []
        assert answer(still, url, 0.0) == answer(still, url, 1e8)


def test_every_rhythm_keeps_its_mean_rate():
    for rhythm in ("poisson", "week", "burst"):
        life = Life(per_day=4.0, rhythm=rhythm)
        count = len(History(life, stream("test", rhythm)).until(1_000 * DAY_S))
        assert 3_400 < count < 4_600, rhythm


def test_a_new_page_is_announced_by_its_parent():
    here = world()
    born = 0
    for site in here.sites:
        numbered = here.pages.of(site.number).numbered
        for page in numbered:
            time = here.web.life(site.number, page).born_s
            if not time or page.parent < 0 or page.same_as >= 0:
                continue
            parent, url = site.base + numbered[page.parent].target, site.base + page.target
            if here.web.life(site.number, numbered[page.parent]).fleeting:
                continue
            if not numbered[page.parent].role.linking:
                continue
            assert url not in {link.url for link in here.links(parent, time - 1e-6)}
            assert url in {link.url for link in here.links(parent, time)}
            assert (time, "M") in here.changes(parent, time)
            born += 1
    assert born > 3
