"""Measure `verify` on sets of drafts and sentences that somebody else wrote.

Run: python benchmarks/verify_sets.py [--show] FILE.jsonl ...

A line with `bundle` and `db` (paths beside the file) is a draft from real passages; `errors` are
its planted errors, each with `kind` and `wrong`, the draft's text. A line without a bundle and
passages is a draft against a whole corpus: `db`, or the file's `PREFIX.db`. A line with `passages`
is a sentence or a short draft against these passages. The name of the file says what is expected:
`quotes`, `figures` (all changed), `honest` (nothing to fail), `opposites` and `same` (near copies),
`off` (about something else).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rolebundle.contracts.verification import Finding, Verification, VerifyRequest
from rolebundle.engine import Engine

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.corpora import build, document  # type: ignore[import-not-found]

Row = dict[str, Any]
_MAX_SHOWN = 300


def answers(path: Path, rows: list[Row], work: Path) -> Iterator[Verification]:
    """The answer to `verify` for each row of a file."""
    own = [row for row in rows if "passages" in row]
    texts = [[p if isinstance(p, str) else p["text"] for p in row["passages"]] for row in own]
    db = build(work, [document(f"r{number:04}", of_row) for number, of_row in enumerate(texts)])
    engines: dict[Path, Engine] = {}
    for row in rows:
        place = path.parent / row.get("db", f"{path.name.partition('-')[0]}.db")
        place = db if "passages" in row else place
        engine = engines.setdefault(place, Engine(place))
        fields: Row = {"draft": row["draft"]}
        if "passages" in row:
            number = own.index(row)
            fields["chunk_ids"] = [f"r{number:04}#{place}" for place in range(len(texts[number]))]
        elif "bundle" in row:
            fields["bundle"] = json.loads((path.parent / row["bundle"]).read_text(encoding="utf-8"))
        yield engine.verify(VerifyRequest(**fields))
    for engine in engines.values():
        engine.close()


def points_at(finding: Finding, row: Row) -> list[int]:
    """The numbers of the planted errors that a finding overlaps."""
    found = []
    for number, error in enumerate(row.get("errors", ())):
        at = row["draft"].find(error["wrong"])
        if at < finding.span.end and finding.span.start < at + len(error["wrong"]):
            found.append(number)
    return found


def measure_drafts(rows: list[Row], verified: list[Verification], show: bool) -> None:
    """Faithful and planted drafts: what fails, what is found, and how many failures are right."""
    faithful_failed, found, planted = 0, Counter[str](), Counter[str]()
    right = wrong = 0
    for row, answer in zip(rows, verified, strict=True):
        failing = [finding for finding in answer.findings if finding.verdict != "clean"]
        hits = {number for finding in failing for number in points_at(finding, row)}
        for number, error in enumerate(row["errors"]):
            planted[error["kind"]] += 1
            found[error["kind"]] += number in hits
            if show and number not in hits:
                print(f"  missed {row['id']}: {error}")
        faithful_failed += not row["errors"] and answer.verdict in ("failed", "check")
        for finding in failing:
            is_right = bool(points_at(finding, row))
            right, wrong = right + is_right, wrong + (not is_right)
            if show and not is_right:
                print(f"  false {row['id']}: {finding.code} {finding.text!r}: {finding.note}")
    faithful = sum(not row["errors"] for row in rows)
    print(f"faithful drafts that fail or are to be checked: {faithful_failed} of {faithful}")
    print(f"planted errors found: {found.total()} of {planted.total()}; " + ", ".join(
        f"{kind} {found[kind]} of {planted[kind]}" for kind in planted))  # fmt: skip
    print(f"findings that are not clean and right: {right} of {right + wrong}")


def measure_set(name: str, rows: list[Row], verified: list[Verification], show: bool) -> None:
    """A set in which each row is to fail, or not to fail, or to be said to differ."""
    outcomes, by_kind = Counter[str](), Counter[str]()
    for row, answer in zip(rows, verified, strict=True):
        outcomes[answer.verdict] += 1
        is_unexpected = (
            answer.verdict in ("failed", "check") if "honest" in name or "same" in name
            else answer.verdict == "clean" if "off" in name
            else "differs" not in answer.counts if "opposites" in name
            else answer.verdict not in ("failed", "check")
        )  # fmt: skip
        if "same" in name or "opposites" in name:
            outcomes["differs"] += "differs" in answer.counts
            is_unexpected = ("differs" in answer.counts) == ("same" in name)
        by_kind[str(row.get("kind", ""))] += is_unexpected
        if show and is_unexpected:
            codes = [(f.code, f.text[:80], f.note) for f in answer.findings if f.verdict != "clean"]
            print(
                f"  {row.get('id', '')} {row.get('kind', '')}: "
                f"{row['draft'][:_MAX_SHOWN]!r}\n    {codes}"
            )
    kinds = ", ".join(f"{count} {kind}" for kind, count in by_kind.most_common() if count)
    print(f"{name}: {dict(outcomes)} of {len(rows)}; not as expected: {by_kind.total()} ({kinds})")


def main() -> None:
    """Measure each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="show what is not as expected")
    options = parser.parse_args()
    for path in options.files:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        with TemporaryDirectory() as work:
            verified = [*answers(path, rows, Path(work))]
        if any(row.get("errors") for row in rows):
            measure_drafts(rows, verified, options.show)
        else:
            measure_set(path.stem, rows, verified, options.show)


if __name__ == "__main__":
    main()
