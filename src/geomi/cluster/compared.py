"""A record as others spell it, beside what the store says: what means the same is the same."""

from __future__ import annotations

import os

from geomi import url as urls
from geomi.archive.digests import plain_digest
from geomi.archive.names import header_uri
from geomi.archive.reader import Member

#: How the names of imported files begin.
IMPORTED = "import-"


def is_imported(path: str) -> bool:
    return os.path.basename(path).startswith(IMPORTED)


def type_of(member: Member, code: int) -> str:
    """A resource is kept as a response without a status."""
    return "response" if member.type == "resource" and not code else member.type


def uri_of(member: Member, url: str) -> str:
    """As the store would have it, if it means `url`."""
    uri = member.target_uri
    return header_uri(url) if uri != url and urls.canonical(uri) == url else uri


def digest_of(member: Member, digest: str) -> str:
    """As the store has it, if it means that, or if the record says none."""
    said = member.headers.get("WARC-Payload-Digest")
    return digest if not said or plain_digest(said) == digest else said
