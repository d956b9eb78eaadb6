"""The settings of [archive] about what is not stored twice."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from geomi.sieve import Sieve


class Thrift(Sieve, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a payload that is known."""

    duplicates: Annotated[
        bool, "A payload that is stored already is kept as a revisit that refers to it"
    ] = True
    index: Annotated[
        str,
        "Index of payloads that collections share: a path, relative to the collection, or a "
        "PostgreSQL address; without it each has its own",
    ] = ""
    duplicate_bytes: Annotated[
        int, Meta(ge=1), "Smaller payloads are stored again: a revisit is no smaller"
    ] = 256
    revisit_form: Annotated[
        Literal["response", "paper"],
        "Header lines kept in a revisit of an equal payload: as the server sent them, or with "
        "status 304 and without Last-Modified, as paper 004 has it (replay then shows a 304)",
    ] = "response"
    duplicate_links: Annotated[
        bool, "Follow the links of a page that is equal to a page under another URL"
    ] = True
    equivalents: Annotated[
        bool,
        "Before a crawl, learn from equal contents which URLs of a site are one page, and ask for "
        "one of them only; see `geomi archive rules`",
    ] = False
    equivalent_confidence: Annotated[
        float,
        Meta(ge=0.5, lt=1),
        "A rule of equal URLs is applied when it is right this often, at least (95 % certain)",
    ] = 0.9
    void: Annotated[
        Literal["revisit", "drop"],
        "What is kept of a page whose content is confirmed as meaningless: a revisit, or nothing",
    ] = "revisit"
