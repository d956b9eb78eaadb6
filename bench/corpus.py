"""The pages everyone is measured on: documentation as Debian ships it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One set of pages. `folder` may be a link; `seed` is where a crawl of it starts.

    A short set is measured several times over, in folders beside each other, so that some thousand
    pages count and not the start of a program.
    """

    name: str  # the Debian package
    folder: Path
    seed: str = "index.html"
    copies: int = 1

    def is_installed(self) -> bool:
        return (self.folder / self.seed).is_file()


CORPORA = (
    Corpus(name="python3-doc", folder=Path("/usr/share/doc/python3/html"), copies=8),
    Corpus(
        name="postgresql-doc-15", folder=Path("/usr/share/doc/postgresql-doc-15/html"), copies=8
    ),
    Corpus(name="openjdk-17-doc", folder=Path("/usr/share/doc/openjdk-17-doc/api")),
)
