"""Files of a node, read piece by piece where they lie: work for an engine's tasks."""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from geomi.errors import ResourceError

PIECE_BYTES = 8 * 2**20


class Piece(NamedTuple):
    path: str
    offset: int
    length: int


def read(piece: Piece) -> bytes:
    try:
        with open(piece.path, "rb") as file:
            file.seek(piece.offset)
            return file.read(piece.length)
    except OSError as error:
        raise ResourceError(f"{piece.path}: {error.strerror or error}") from error


def measure(path: str) -> tuple[int, str]:
    """(length, SHA-256) of a whole file."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error


def discard(path: str) -> bool:
    """Removes a file; True if it was there. May be repeated."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error
    return True
