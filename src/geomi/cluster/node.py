"""What this machine is called in the store, and where its agents keep the archive.

`geomi cluster start --name --archive` says so, in the environment of all that Ray starts there.
"""

from __future__ import annotations

import os
import socket

NAME, ARCHIVE = "GEOMI_NODE", "GEOMI_ARCHIVE"
#: How a Ray node shows its name to others, before the name itself.
RESOURCE = "geomi:"


def here() -> str:
    """The name of this node; several may share a machine."""
    return os.environ.get(NAME) or socket.gethostname()


def kept_path(collection: str, directory: str) -> str:
    """Where agents of this node keep an archive directory of a collection: in it, or beside it."""
    root = os.environ.get(ARCHIVE)
    if root and not os.path.isabs(directory):
        return os.path.join(root, os.path.basename(collection), directory)
    return os.path.join(collection, directory)
