"""Sites change hands when an agent has none and another has several."""

from __future__ import annotations

from geomi.cluster.balance import EVEN_S, LOOK_S, Balance, Held, crowded, even


def held(*waiting: int, address: str = "") -> list[Held]:
    return [Held(n, f"s{n}.example", address, pages) for n, pages in enumerate(waiting, 1)]


def never(_site: str) -> bool:
    return False


def test_who_is_dry_at_two_looks_gets_some_of_who_has_most() -> None:
    balance = Balance()
    assert balance.look({"a/1": 9, "b/1": 3}, ["a/1", "b/1", "c/1"]) == ("", [])
    assert balance.look({"a/1": 9, "b/1": 3}, ["a/1", "b/1", "c/1"]) == ("a/1", ["c/1"])
    assert balance.look({"a/1": 9, "b/1": 3, "c/1": 1}, ["a/1", "b/1", "c/1"]) == ("", [])


def test_a_last_site_is_never_taken_away() -> None:
    balance = Balance()
    for _ in range(3):
        assert balance.look({"a/1": 1}, ["a/1", "b/1"]) == ("", [])


def test_holders_that_run_no_more_give_nothing_and_get_nothing() -> None:
    balance = Balance()
    for _ in range(3):
        assert balance.look({"dead/1": 9}, ["a/1", "b/1"]) == ("", [])


def test_all_get_alike_and_the_longest_site_stays() -> None:
    given = Balance().share(held(100, 90, 80, 70, 60), ["b/1"], is_alone=never)
    assert given == {2: "b/1", 4: "b/1"}
    given = Balance().share(held(*range(100, 40, -10)), ["b/1", "c/1"], is_alone=never)
    assert given == {2: "b/1", 3: "c/1", 5: "b/1", 6: "c/1"}


def test_a_site_of_a_few_pages_is_not_worth_the_way() -> None:
    assert Balance().share(held(100, 3), ["b/1"], is_alone=never) == {}


def test_sites_of_one_address_go_together_and_those_of_the_operator_alone() -> None:
    shared = [*held(50, 50, address="192.0.2.1"), Held(9, "s9.example", "192.0.2.9", 60)]
    assert Balance().share(shared, ["b/1"], is_alone=never) == {9: "b/1"}
    alone = Balance().share(shared, ["b/1"], is_alone=lambda site: site != "s9.example")
    assert alone == {1: "b/1"}


def test_what_is_promised_is_kept_until_its_taker_has_something() -> None:
    balance = Balance()
    for _ in range(2):
        balance.look({"a/1": 3}, ["a/1", "b/1"])
    balance.share(held(90, 80, 70), ["b/1"], is_alone=never)
    assert balance.promised == {"b/1"}
    balance.look({"a/1": 2, "b/1": 1}, ["a/1", "b/1"])
    assert balance.promised == frozenset()


def test_there_is_a_second_between_two_looks_also_where_the_date_was_set_back() -> None:
    balance = Balance()
    assert balance.is_time(1000.0)
    assert not balance.is_time(1000.0 + LOOK_S / 2)
    assert balance.is_time(1000.0 + LOOK_S)
    assert balance.is_time(5.0)


def test_sites_of_an_address_whose_time_is_shared_go_to_all() -> None:
    sites = held(*[1] * 40, address="192.0.2.1")
    given = Balance().share(sites, ["b/1"], is_alone=never, divided={"192.0.2.1"})
    assert set(given.values()) == {"b/1"} and len(given) == 20


def test_an_address_is_crowded_where_two_agents_would_have_enough_to_do() -> None:
    assert crowded(["192.0.2.1"] * 64 + ["192.0.2.2"] * 63 + [""] * 99) == ["192.0.2.1"]


def test_who_serves_one_address_with_others_gets_sites_for_its_share_of_the_time() -> None:
    sites = [(n, "a/1", ("192.0.2.1",)) for n in range(100)]
    slots = {"192.0.2.1": {"a/1": 2, "b/1": 4, "c/1": 4}}
    given = even(sites, slots, {"a/1": 9, "b/1": 500, "c/1": 500})
    assert sorted(given.values()) == ["b/1"] * 25 + ["c/1"] * 25
    given = even(sites, slots, {"b/1": 500, "c/1": 10})
    assert sorted(given.values()) == ["b/1"] * 25 + ["c/1"] * 10  # no more than it has room for


def test_a_few_sites_more_or_less_stay_where_they_are() -> None:
    sites = [(n, "ab"[n > 53] + "/1", ("192.0.2.1",)) for n in range(100)]
    assert even(sites, {"192.0.2.1": {"a/1": 2, "b/1": 2}}, {"a/1": 500, "b/1": 500}) == {}


def test_there_are_seconds_between_two_looks_at_shared_addresses() -> None:
    balance = Balance()
    assert balance.is_time_to_even(1000.0)
    assert not balance.is_time_to_even(1000.0 + EVEN_S / 2)
    assert balance.is_time_to_even(1000.0 + EVEN_S)
