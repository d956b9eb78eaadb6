"""Reads documents: charset, title, links by kind, what robots may do with them.

Takes: the URL, header fields and body of a Capture. Gives: a Page with its links as Targets.
"""

from geomi.extract.head import charset_of, mime_of, parse_head
from geomi.extract.page import Extractor

__all__ = ["Extractor", "charset_of", "mime_of", "parse_head"]
