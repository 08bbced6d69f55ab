"""Measure how many ordinary pages the scan labels or quarantines, and for what.

Run: python benchmarks/scan_pages.py [FOLDER ...] [--limit N] [--suffix .html]

Files are read and scanned as by an ingest, without storing them. Files with the same bytes count
once. Without a folder, the documentation of `documentation.py` is measured.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from time import process_time

from documentation import gather, print_table

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.errors import DocumentError
from rolebundle.ingest.intake_scan import IntakeDocument, scan_document
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_name_for, reader_named

_HIDDEN = frozenset(
    ("invisible_element", "off_screen_element", "white_text", "aria_hidden", "markup_comment")
)
_MAX_SHOWN_LINES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, help="measure so many pages, chosen by a fixed seed")
    parser.add_argument("--suffix", default=".html")
    parser.add_argument("--work", type=Path, default=Path("/tmp/rolebundle-benchmarks"))
    options = parser.parse_args()
    folders = options.folders or [gather(options.work).files]
    paths = sorted(
        path for folder in folders for path in folder.rglob(f"*{options.suffix}") if path.is_file()
    )
    random.Random(0).shuffle(paths)
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    reading = 0.0
    for path, data in _distinct(paths, options.limit or len(paths)):
        start = process_time()
        documents = list(_documents(data, path))
        reading += process_time() - start
        counts["pages"] += 1
        for _, _, scanned in map(scan_document, documents):
            if scanned is None:
                continue
            findings = [f for f in json.loads(scanned.findings) if _counts(f)]
            kinds = {finding["kind"] for finding in findings}
            name = "quarantined" if scanned.verdict == "quarantine" else "labelled"
            keys = [f"{name}: {kind}" for kind in kinds]
            if kinds & _HIDDEN:
                keys.append(f"{name} for hidden text")
            for key in keys:
                counts[key] += 1
                notes = "; ".join(finding["note"][:80] for finding in findings)
                examples.setdefault(key, []).append(f"{path}: {notes[:200]}")
    pages = max(counts["pages"], 1)
    rows = [("pages", f"{pages:,}", "50,000"), ("seconds of reading", f"{reading:.1f}", "")]
    goals = {"labelled for hidden text": "at most 2%", "quarantined for hidden text": "0"}
    for key in sorted({*counts, *goals} - {"pages"}):
        rows.append((key, f"{counts[key]:,} ({counts[key] / pages:.2%})", goals.get(key, "")))
    print_table(rows)
    for key, lines in sorted(examples.items()):
        print(f"\n{key}")
        for line in lines[:_MAX_SHOWN_LINES]:
            print(f"  {line}")


def _distinct(paths: list[Path], limit: int) -> Iterator[tuple[Path, bytes]]:
    seen: set[bytes] = set()
    for path in paths:
        data = path.read_bytes()
        digest = blake2b(data, digest_size=16).digest()
        if digest not in seen:
            seen.add(digest)
            yield path, data
        if len(seen) >= limit:
            return


def _documents(data: bytes, path: Path) -> Iterator[IntakeDocument]:
    _, read = reader_named(reader_name_for(path.name) or "text")
    try:
        for parsed in read(data, path.name, ""):
            if isinstance(parsed, ParsedDocument):
                title = str(parsed.inferred.get("title", ""))
                metadata = DocumentMetadata(path.name, "ordinary", title, path.name)
                yield parsed, metadata
    except DocumentError:
        return


def _counts(finding: dict[str, str]) -> bool:
    """Whether a finding is a reason for the verdict; an ordinary comment in markup is none."""
    is_part = finding["note"].startswith(("kept: ", "removed: "))
    return finding["kind"] not in _HIDDEN or is_part or finding["severity"] == "high"


if __name__ == "__main__":
    main()
