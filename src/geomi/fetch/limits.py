"""How long and how much one fetch may take."""

from __future__ import annotations

from msgspec import Struct

_KIB = 1024
_MIB = 1024 * _KIB


class Limits(Struct, frozen=True, kw_only=True):
    """The caps of one client. Whatever is cut is kept and says so (`Capture.truncated`)."""

    connect_s: float = 10.0  # TCP and TLS together: cTim
    idle_s: float = 20.0  # without a header line or a body byte: hTim, dTim (paper: 5)
    total_s: float = 600.0  # one byte a minute never idles for long, but ends here
    head_bytes: int = 256 * _KIB  # libcurl itself stops at 300 KiB, 100 KiB a line, 5,000 lines
    html_bytes: int = 10 * _MIB  # text/html and application/xhtml+xml
    other_bytes: int = 1024 * _MIB
    spool_bytes: int = 1 * _MIB  # larger bodies go to a temporary file
    sniff_bytes: int = 64 * _KIB  # of a spooled body these stay in memory; none smaller spools
    in_flight_bytes: int = 64 * _MIB  # of all bodies in memory; beyond it bodies spool earlier

    def body_bytes(self, mime: str) -> int:
        """The cap for a body of this type (lower case, no parameters)."""
        html = mime in ("text/html", "application/xhtml+xml")
        return self.html_bytes if html else self.other_bytes
