"""Asks servers for pages: names to addresses, HTTP/1.1 over libcurl, byte for byte, within limits.

Takes: a `Fetch` (one request, its address already checked).   Gives: a `Capture`.
"""
