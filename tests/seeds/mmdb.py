"""A file in MaxMind's format, written by hand from its specification (version 2.0)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any


def database(countries: Mapping[str, Any], *, ip_version: int = 4) -> bytes:
    """CIDR -> record, as a database of 24-bit pointers."""
    bits = 32 if ip_version == 4 else 128
    tree: list[list[Any]] = [[None, None]]
    for cidr, record in countries.items():
        network = ipaddress.ip_network(cidr)
        number, length = int(network.network_address), network.prefixlen
        if ip_version == 6 and network.version == 4:
            length += 96
        at = 0
        for place in range(length - 1):
            bit = number >> (bits - 1 - place) & 1
            if tree[at][bit] is None:
                tree.append([None, None])
                tree[at][bit] = len(tree) - 1
            at = tree[at][bit]
        tree[at][number >> (bits - length) & 1] = ("record", record)
    data = b""
    offsets: dict[int, int] = {}
    nodes = b""
    for node in tree:
        for child in node:
            if child is None:
                value = len(tree)
            elif isinstance(child, int):
                value = child
            else:
                key = id(child)
                if key not in offsets:
                    offsets[key] = len(data)
                    data += encode(child[1])
                value = len(tree) + 16 + offsets[key]
            nodes += value.to_bytes(3, "big")
    metadata = {
        "binary_format_major_version": ("uint16", 2),
        "binary_format_minor_version": ("uint16", 0),
        "build_epoch": ("uint64", 1_700_000_000),
        "database_type": "geomi-test",
        "description": {"en": "test"},
        "ip_version": ("uint16", ip_version),
        "languages": ["en"],
        "node_count": ("uint32", len(tree)),
        "record_size": ("uint16", 24),
    }
    return nodes + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + encode(metadata)


def encode(value: Any) -> bytes:
    if isinstance(value, str):
        raw = value.encode()
        assert len(raw) < 29 + 256
        return control(2, len(raw)) + raw
    if isinstance(value, dict):
        inside = b"".join(encode(key) + encode(one) for key, one in value.items())
        return control(7, len(value)) + inside
    if isinstance(value, list):
        return control(11, len(value)) + b"".join(map(encode, value))
    kind, number = value
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return control({"uint16": 5, "uint32": 6, "uint64": 9}[kind], len(raw)) + raw


def control(kind: int, size: int) -> bytes:
    more = b"" if size < 29 else bytes([size - 29])
    low = min(size, 29)
    if kind < 8:
        return bytes([kind << 5 | low]) + more
    return bytes([low, kind - 7]) + more
