"""The certificate of a deletion: what went, when, how much, who asked. Decides only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from geomi.archive.rewrite_tables import Job


def facts_of(job: Job, *, collection: str, ended: float) -> dict[str, Any]:
    """As JSON has it."""
    facts, options = job.facts, job.options
    kinds = {
        name.partition(".")[2]: number
        for name, number in sorted(facts.items())
        if name.startswith("records.")
    }
    return {
        "certificate": "deletion",
        "collection": collection,
        "job": job.rewrite,
        "target": {"kind": options["kind"], "value": options["value"]},
        "asked_by": options["by"],
        "why": options["why"],
        "begun": _time(job.started),
        "ended": _time(ended),
        "tombstones": facts.get("pages", 0),
        "records": facts.get("records", 0),
        "records_by_type": kinds,
        "record_bytes": facts.get("bytes", 0),
        "orphans": facts.get("orphan", 0),
        "promoted": facts.get("response", 0),
        "pointed_elsewhere": facts.get("point", 0),
        "payloads": facts.get("payloads", 0),
        "payload_digests": facts.get("digests", []),
        "files": facts.get("files", []),
        "purged": bool(options["purge"]),
    }


def text_of(facts: dict[str, Any]) -> str:
    """The same for people."""
    target = facts["target"]
    kinds = ", ".join(f"{number} {kind}" for kind, number in facts["records_by_type"].items())
    lines = [
        "Certificate of deletion",
        "",
        f"collection     {facts['collection']}",
        f"deleted        {target['kind']} {target['value']}",
        f"asked by       {facts['asked_by']}",
        f"why            {facts['why'] or '(not said)'}",
        f"begun          {facts['begun']}",
        f"ended          {facts['ended']}",
        "",
        f"records        {facts['records']} ({kinds}), {facts['record_bytes']} bytes",
        f"of no visit    {facts['orphans']} extents",
        f"payloads       {facts['payloads']} are nowhere in the archive any more",
        f"promoted       {facts['promoted']} captures hold their payload themselves now",
        f"pointed        {facts['pointed_elsewhere']} captures refer to another record now",
        f"tombstones     {facts['tombstones']} pages will not be asked for again",
        "old files      " + (
            "removed from the disk, and the database rewritten" if facts["purged"]
            else "still on disk, until they are purged"
        ),
        "",
    ]  # fmt: skip
    if facts["files"]:
        lines.append("files")
    for one in facts["files"]:
        for name in ("before", "after"):
            digest, size = one[f"{name}_sha256"], one[f"{name}_bytes"]
            lines.append(f"  {name:6}  {one[name]}  {size} bytes  sha256:{digest}")
    if facts["payload_digests"]:
        lines += ["", "digests of the payloads", *(f"  {one}" for one in facts["payload_digests"])]
    return "\n".join(lines) + "\n"


def _time(utc_s: float) -> str:
    return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
