"""The frontier: decides which page of which party comes next, and when.

Takes `Wanted` (seeds, links, due pages, notices) and what visits came to.
Gives the next page that may be asked for now. Decides only; SQL in tables.py.
"""
