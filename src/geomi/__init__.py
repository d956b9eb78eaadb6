"""geomi collects web sites completely and politely, and archives them without waste.

Takes seeds (URLs); gives a collection: a directory of WARC files and a store that knows each page.
"""

__version__ = "0.1.0.dev0"
