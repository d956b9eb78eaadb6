"""Rules that know a page without content by its structure and words, in Korean and English.

Each has a name and a reason. A page is one thing: the first rule that holds names it. Rules are
about short pages: what says much is content, whatever form it carries. Decides only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from geomi.history import wall_words


class Look(Struct, frozen=True, kw_only=True):
    """What rules see of a page. Made by: whoever read it.   Taken by: the rules."""

    title: str = ""
    heading: str = ""
    main: str = ""  # visible text without what surrounds every page of the site
    labels: str = ""  # of buttons and fields
    alerts: str = ""  # what scripts say at once
    fields: tuple[str, ...] = ()
    passwords: int = 0
    forms: int = 0
    links: int = 0
    sends_to: str = ""
    words: int = 0  # in main


class Rule(Struct, frozen=True, kw_only=True):
    """One way to know a page."""

    name: str  # login, realname, consent, denial, error; with what tells it apart behind a dash
    reason: str
    holds: Callable[[Look], bool]


#: Of a login: a name, a password, a search of the site, one more.
_LOGIN_FIELDS = 4


def _top(look: Look) -> str:
    """What a page says first of all."""
    return f"{look.title} {look.heading}"


def _all(look: Look) -> str:
    return f"{look.title} {look.heading} {look.main} {look.labels} {look.alerts}"


def _says(look: Look) -> str:
    """What a page without any form of its own tells its reader."""
    return f"{look.title} {look.main[:600]} {look.alerts}"


def _is_real_name(look: Look) -> bool:
    if look.words > 300:
        return False
    asks = len({found[0].replace(" ", "") for found in wall_words.REAL_NAME.finditer(_all(look))})
    has_fields = bool(look.fields or look.passwords or look.forms)
    if wall_words.REAL_NAME_TITLE.search(_top(look)):
        return has_fields or (look.words <= 120 and asks >= 1)
    return has_fields and asks >= 2 and look.words <= 150


def _is_login_form(look: Look) -> bool:
    """One password is asked for, and hardly anything is said. With two it is a registration.

    Where next to nothing is said, the form says it in any language.
    """
    if look.passwords != 1 or look.words > 100:
        return False
    if look.words <= 60 and len(look.fields) <= _LOGIN_FIELDS:
        return True
    return wall_words.LOGIN.search(f"{_all(look)} {' '.join(look.fields)}") is not None


def _is_login_title(look: Look) -> bool:
    """The page is called login, and has the form; around it there may be a site."""
    return (
        look.passwords == 1
        and look.words <= 400
        and wall_words.LOGIN.search(_top(look)) is not None
    )


def _is_login_redirect(look: Look) -> bool:
    return (
        look.words <= 40
        and look.sends_to != ""
        and wall_words.LOGIN_ADDRESS.search(look.sends_to) is not None
    )


def _asks_login(look: Look) -> bool:
    """Says that a login is needed, and nothing else."""
    return look.words <= 40 and wall_words.ASKS_LOGIN.search(_says(look)) is not None


def _is_robot_check(look: Look) -> bool:
    return (
        look.words <= 100 and look.links <= 20 and wall_words.ROBOT.search(_all(look)) is not None
    )


def _is_denial(look: Look) -> bool:
    if look.words <= 400 and look.title and wall_words.DENIED.match(_core(look.title)):
        return look.words <= 150 or wall_words.DENIED.search(look.heading) is not None
    return look.words <= 60 and wall_words.DENIED.search(_says(look)) is not None


def _is_consent(look: Look) -> bool:
    acts = look.forms or look.labels or look.links
    return bool(acts) and look.words <= 150 and wall_words.CONSENT.search(_all(look)) is not None


def _is_lost(look: Look) -> bool:
    if look.words <= 200 and (
        wall_words.LOST.search(_top(look)) or wall_words.LOST_AT_TOP.search(_top(look))
    ):
        return True
    return look.words <= 40 and wall_words.LOST.search(_says(look)) is not None


def _is_broken(look: Look) -> bool:
    if look.words <= 150 and wall_words.BROKEN.search(_top(look)):
        return True
    return look.words <= 60 and wall_words.BROKEN.search(_says(look)) is not None


_LEADING = re.compile(r"^[\W\d_]+")


def _core(title: str) -> str:
    """A title without the code before it."""
    return _LEADING.sub("", re.sub(r"^\s*(?:error|http)\s*", "", title, flags=re.IGNORECASE))


RULES: tuple[Rule, ...] = (
    Rule(name="realname", reason="asks for the reader's real name or identity",
         holds=_is_real_name),
    Rule(name="login", reason="one password field, hardly any text", holds=_is_login_form),
    Rule(name="login-title", reason="called login, with a password field", holds=_is_login_title),
    Rule(name="login-redirect", reason="sends its reader to a login", holds=_is_login_redirect),
    Rule(name="login-asked", reason="says that a login is needed, and no more", holds=_asks_login),
    Rule(name="robot", reason="asks whether its reader is a robot", holds=_is_robot_check),
    Rule(name="consent", reason="wants consent before it shows anything", holds=_is_consent),
    Rule(name="denial", reason="says that access is denied, and no more", holds=_is_denial),
    Rule(name="error-lost", reason="says that there is no such page, with code 200",
         holds=_is_lost),
    Rule(name="error", reason="says that something failed, with code 200", holds=_is_broken),
)  # fmt: skip

#: No rule is about a longer page: its text is not searched.
_MOST_WORDS = 400


def rule_of(look: Look) -> str:
    """The name of the rule that knows the page; empty: none does."""
    if look.words > _MOST_WORDS:
        return ""
    return next((rule.name for rule in RULES if rule.holds(look)), "")


def reason_of(name: str) -> str:
    """What a rule says of a page, by its name."""
    return next((rule.reason for rule in RULES if rule.name == name), name)
