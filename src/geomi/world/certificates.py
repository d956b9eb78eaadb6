"""Certificates made here, without a library: P-256, ECDSA, X.509 (RFC 5280) by hand.

For a world on loopback only: keys follow from a number, so they protect nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address

# The curve P-256 (FIPS 186): y^2 = x^3 - 3x + b over the field of _P, with a point of order _N.
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None  # None: the neutral one

_EC_KEY, _CURVE = "1.2.840.10045.2.1", "1.2.840.10045.3.1.7"
_ECDSA_SHA256 = "1.2.840.10045.4.3.2"
_NAME = "2.5.4.3"


def _add(a: _Point, b: _Point) -> _Point:
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if (a[1] + b[1]) % _P == 0:
            return None
        slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, _P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _times(k: int) -> tuple[int, int]:
    """k times the base point, for 0 < k < _N."""
    point: _Point = _G
    total: _Point = None
    while k:
        if k & 1:
            total = _add(total, point)
        point = _add(point, point)
        k >>= 1
    assert total is not None
    return total


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha256(b"/".join(parts)).digest(), "big") % (_N - 1) + 1


@dataclass(frozen=True)
class Key:
    """A private key that follows from a text."""

    text: str

    @cached_property
    def secret(self) -> int:
        return _number(b"key", self.text.encode())

    @cached_property
    def point(self) -> bytes:
        x, y = _times(self.secret)
        return b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")

    def sign(self, data: bytes) -> bytes:
        digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
        k = _number(b"nonce", self.text.encode(), data)
        r = _times(k)[0] % _N
        s = pow(k, -1, _N) * (digest + r * self.secret) % _N
        return _sequence(_integer(r), _integer(s))

    def pem(self) -> str:
        der = _sequence(
            _integer(1), _tlv(0x04, self.secret.to_bytes(32, "big")), _tlv(0xA0, _oid(_CURVE)),
            _tlv(0xA1, _bits(self.point)),
        )  # fmt: skip
        return _pem("EC PRIVATE KEY", der)


def certificate(
    subject: str,
    key: Key,
    *,
    issuer: str,
    signer: Key,
    names: Sequence[str] = (),
    years: tuple[int, int] = (2020, 2120),
    authority: bool = False,
) -> str:
    """One certificate as PEM, for names and addresses; `issuer` is `subject`: signed by itself."""
    public = _sequence(_sequence(_oid(_EC_KEY), _oid(_CURVE)), _bits(key.point))
    extensions = [
        _extension("2.5.29.19", _sequence(*([_tlv(0x01, b"\xff")] if authority else [])), True),
        # keyCertSign for an authority, digitalSignature for the others
        _extension("2.5.29.15", _tlv(0x03, b"\x02\x04" if authority else b"\x07\x80"), True),
        _extension("2.5.29.14", _tlv(0x04, _key_id(key))),
        _extension("2.5.29.35", _sequence(_tlv(0x80, _key_id(signer)))),
    ]
    if names:
        extensions.append(_extension("2.5.29.17", _sequence(*map(_general_name, names))))
    algorithm = _sequence(_oid(_ECDSA_SHA256))
    serial = _number(subject.encode(), issuer.encode(), *(name.encode() for name in names)) >> 100
    body = _sequence(
        _tlv(0xA0, _integer(2)), _integer(serial), algorithm, _name(issuer),
        _sequence(_new_year(years[0]), _new_year(years[1])), _name(subject), public,
        _tlv(0xA3, _sequence(*extensions)),
    )  # fmt: skip
    return _pem("CERTIFICATE", _sequence(body, algorithm, _bits(signer.sign(body))))


def _key_id(key: Key) -> bytes:
    return hashlib.sha1(key.point).digest()


def _name(common: str) -> bytes:
    pair = _sequence(_oid(_NAME), _tlv(0x0C, common[:64].encode()))
    return _sequence(_tlv(0x31, pair))


def _general_name(name: str) -> bytes:
    try:
        return _tlv(0x87, ip_address(name.strip("[]")).packed)
    except ValueError:
        return _tlv(0x82, name.encode("ascii"))


def _extension(oid: str, value: bytes, critical: bool = False) -> bytes:
    flag = [_tlv(0x01, b"\xff")] if critical else []
    return _sequence(_oid(oid), *flag, _tlv(0x04, value))


def _new_year(year: int) -> bytes:
    if year < 2050:
        return _tlv(0x17, f"{year % 100:02d}0101000000Z".encode())
    return _tlv(0x18, f"{year}0101000000Z".encode())


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tlv(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _tlv(0x03, b"\0" + content)


def _oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    out = bytearray([40 * first + second])
    for number in rest:
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.append(0x80 | number & 0x7F)
        out += bytes(reversed(septets))
    return _tlv(0x06, bytes(out))


def _pem(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode().replace("\n", "")
    lines = "\n".join(text[k : k + 64] for k in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
