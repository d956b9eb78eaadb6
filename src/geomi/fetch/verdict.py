"""What an exchange comes to: the network states of paper 000, decided from facts alone."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from geomi.fetch.raw import flaw
from geomi.fetch.reply import Reply
from geomi.states import Outcome


class Failure(IntEnum):
    """The numbers of libcurl's errors that are told apart; they are part of its ABI."""

    NONE = 0
    UNSUPPORTED = 1  # HTTP/0.9, another version, a status line that is none
    MALFORMED_URL = 3
    REFUSED = 7
    WEIRD_REPLY = 8  # a header line without colon, NUL, a Content-Length that is no number
    OUR_STOP = 23  # Reply.add said STOP
    TIMED_OUT = 28
    TLS = 35
    OUR_REFUSAL = 42  # to send a request a second time
    SEND = 55
    TLS_CLIENT_CERTIFICATE = 58
    TLS_CIPHER = 59
    CERTIFICATE = 60
    TRANSFER_ENCODING = 61  # one we did not ask for
    ISSUER = 83
    TOO_LARGE = 100  # of a header: libcurl's own cap on a line, or on the number of lines


#: libcurl gave up on a header for what stands in it, and dropped what followed.
NOT_HTTP = frozenset({Failure.UNSUPPORTED, Failure.WEIRD_REPLY, Failure.TRANSFER_ENCODING})
CERTIFICATE = frozenset({Failure.CERTIFICATE, Failure.ISSUER})
_TLS = frozenset({Failure.TLS, Failure.TLS_CLIENT_CERTIFICATE, Failure.TLS_CIPHER})
#: Never later than connecting, even where a request went into a resting connection that was dead.
_CONNECTING = CERTIFICATE | _TLS | {Failure.REFUSED}

#: OpenSSL's numbers for what is wrong with a certificate (X509_V_ERR_*).
_WRONG = {
    9: "not yet valid", 10: "expired", 18: "self-signed", 19: "unknown authority",
    20: "unknown authority", 21: "unknown authority", 23: "revoked", 62: "wrong name",
    64: "wrong name",
}  # fmt: skip


_CERTIFICATE = "certificate: "


class Verdict(Struct, frozen=True, kw_only=True):
    """The part of a Capture that is judged, not received."""

    outcome: Outcome
    truncated: str = ""
    detail: str = ""


def certificate_words(number: int, said: str) -> str:
    """What is wrong with a certificate, in two words, then in libcurl's."""
    word = _WRONG.get(number, "")
    if not word and "subject name" in said:  # libcurl's own comparison
        word = "wrong name"
    return f"{word} ({said})" if word else said


def certificate_fault(outcome: Outcome, detail: str) -> str:
    """What is wrong with the certificate of a server that was not asked; empty: nothing."""
    if outcome is not Outcome.C_ERR or not detail.startswith(_CERTIFICATE):
        return ""
    word = detail.removeprefix(_CERTIFICATE).partition(" (")[0]
    return word if word in _WRONG.values() else "bad certificate"


def judge(reply: Reply, code: int, *, error: int, said: str, asked: bool, overdue: bool) -> Verdict:
    """`said`: libcurl's words (or ours) about `error`; `asked`: the request was sent, so we were
    connected; `overdue`: the total time is over."""
    said = reply.detail or said or (f"libcurl: error {error}" if error else "")
    if error == Failure.MALFORMED_URL:
        return Verdict(outcome=Outcome.BAD, detail=said)
    if error in _CONNECTING or (error and not asked):
        return _unconnected(error, said)
    if reply.whole and code:
        return _in_body(reply, code, error=error, said=said, overdue=overdue)
    return _in_header(reply, error=error, said=said)


def _unconnected(error: int, said: str) -> Verdict:
    if error == Failure.TIMED_OUT:
        return Verdict(outcome=Outcome.C_TIM, detail=said)
    if error in CERTIFICATE:
        said = f"{_CERTIFICATE}{said}"
    elif error in _TLS:
        said = f"TLS: {said}"
    return Verdict(outcome=Outcome.C_ERR, detail=said)


def _in_header(reply: Reply, *, error: int, said: str) -> Verdict:
    some = bool(reply.head or reply.got)
    if reply.head_cut:
        return Verdict(outcome=Outcome.H_ERR, truncated="length", detail=said)
    if error in NOT_HTTP:
        cut = "" if reply.all_came or not some else "unspecified"
        return Verdict(outcome=Outcome.H_NPR, truncated=reply.truncated or cut, detail=said)
    if reply.got or reply.whole:  # bytes that follow no header, or a status line without a code
        return Verdict(outcome=Outcome.H_NPR, truncated=reply.truncated, detail="not HTTP")
    if error == Failure.NONE:
        said = "closed inside the header"
        return Verdict(outcome=Outcome.H_SHT, truncated="disconnect", detail=said)
    if error == Failure.TIMED_OUT:
        return Verdict(outcome=Outcome.H_TIM, truncated="time" if some else "", detail=said)
    if error == Failure.TOO_LARGE or "response headers" in said:
        said = f"header too large: {said}"
        return Verdict(outcome=Outcome.H_ERR, truncated="length" if some else "", detail=said)
    if some:
        return Verdict(outcome=Outcome.H_SHT, truncated="disconnect", detail=said)
    return Verdict(outcome=Outcome.H_ERR, detail=said)


def _in_body(reply: Reply, code: int, *, error: int, said: str, overdue: bool) -> Verdict:
    cut = Outcome.CUT if code == 200 else Outcome.CODE
    if reply.truncated == "length":
        return Verdict(outcome=cut, truncated="length", detail=said)
    if reply.truncated:  # the spool failed
        return Verdict(outcome=Outcome.D_ERR, truncated=reply.truncated, detail=said)
    if error == Failure.NONE:
        return Verdict(outcome=Outcome.OK if code == 200 else Outcome.CODE, detail=said)
    if overdue:
        return Verdict(outcome=cut, truncated="time", detail=said)
    if error == Failure.TIMED_OUT:
        return Verdict(outcome=Outcome.D_TIM, truncated="time", detail=said)
    return Verdict(outcome=Outcome.D_ERR, truncated="disconnect", detail=said)


def judge_raw(reply: Reply, *, error: int, said: str) -> Verdict:
    """The same for an answer that was read without libcurl's HTTP, since that gave up on it."""
    wrong = flaw(reply.head)
    some = bool(reply.head or reply.got)
    truncated = reply.truncated
    if not truncated and error and some:
        truncated = "time" if error == Failure.TIMED_OUT else "disconnect"
    if not some or wrong == "header without end":
        late = error == Failure.TIMED_OUT
        outcome = Outcome.H_TIM if late else Outcome.H_SHT if some else Outcome.H_ERR
        said = said or "closed inside the header"
        return Verdict(outcome=outcome, truncated=truncated or "disconnect" * some, detail=said)
    if wrong:
        detail = f"not HTTP: {wrong} (read as it came)"
        return Verdict(outcome=Outcome.H_NPR, truncated=truncated, detail=detail)
    detail = "a good answer where the last was not HTTP: to be asked again"
    return Verdict(outcome=Outcome.H_ERR, truncated=truncated, detail=detail)
