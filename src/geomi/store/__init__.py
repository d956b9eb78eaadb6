"""The store: one database a collection, asked in SQL that SQLite and PostgreSQL understand.

Takes sentences and rows from the `tables.py` of each stage. Gives rows, transactions and errors of
geomi's own tree.
"""

from geomi.store.sqlite import SqliteStore
from geomi.store.store import POSTGRESQL, SQLITE, Both, Store, open_store

__all__ = ["POSTGRESQL", "SQLITE", "Both", "SqliteStore", "Store", "open_store"]
