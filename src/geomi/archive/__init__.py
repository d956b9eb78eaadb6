"""Archive: keeps what came over the wire, as WARC 1.1 and CDXJ that any replay tool reads.

Takes `Capture` (and the links of its `Page`); gives gzip members to append, and `Place`.
`record` and `reader` are pure and thin, `check` proves a file, `files` and `writer` touch the disk.
"""
