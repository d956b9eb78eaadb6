"""Every error geomi raises, by who must act.

GeomiError
├── InternalError   our bug: stop, tell the story
├── RemoteError     a site broke a rule: count it, go on
├── OperatorError   a command or a setting is wrong: say it once, exit 2
└── ResourceError   disk, database or network around us: wait, retry
    └── ConflictError   two writers met: do it again at once

A message says what was seen, what was wanted, and where.
"""

from __future__ import annotations


class GeomiError(Exception):
    """Root of all errors geomi raises on purpose."""


class InternalError(GeomiError):
    """A broken invariant of geomi itself."""


class RemoteError(GeomiError):
    """A server, or a file another program wrote, broke a rule."""


class OperatorError(GeomiError):
    """A command or a setting is wrong; the text is one sentence for the person who gave it."""


class ResourceError(GeomiError):
    """The disk, database or network around us failed; the work can go on later."""


class ConflictError(ResourceError):
    """Two writers of the store got in each other's way and this one gave way; do it again now."""
