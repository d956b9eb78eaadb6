"""Seeds: where parties start, from lists, sitemaps and feeds, and from links out of known sites.

Takes files and candidates. Gives `Wanted` of reason seed.
"""
