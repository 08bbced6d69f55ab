"""Measure `verify` and `remember` on drafts, quotes, figures and facts that somebody else wrote.

Run: python benchmarks/drafts.py FOLDER [PART] [--show]

`FOLDER/corpus` is ingested; `FOLDER/PART` (by default `dev`) has `drafts.jsonl`, `quotes.jsonl`,
`figures.jsonl` and `facts.jsonl`. A row has an `id`, a `kind`, a `draft` with citations
`path:start-end`, and perhaps an `error` and its `error_span`; a fact has a `fact` and its `cite`.
An error is named if a finding that fails or is to be checked overlaps it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rolebundle.admin import Admin
from rolebundle.contracts.memory import RememberRequest
from rolebundle.contracts.verification import Finding, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.memory.facts import file_fact
from rolebundle.workspace import Workspace

Row = dict[str, Any]
_HONEST = ("faithful", "honest", "right")


def doubts(engine: Engine, draft: str) -> list[Finding]:
    """The findings that are not clean."""
    answer = engine.verify(VerifyRequest(draft=draft))
    return [finding for finding in answer.findings if finding.verdict != "clean"]


def named(row: Row, found: list[Finding]) -> bool:
    """Whether a finding is about the error of a row."""
    start, end = row.get("error_span") or (0, len(row["draft"]))
    # A negation may be one word of the sentence that is named.
    return any(f.span.start < end and start < f.span.end for f in found)


def measure(engine: Engine, name: str, rows: list[Row], show: bool) -> None:
    """Print how many rows of each kind fail, are to be checked, and have their error named."""
    counts, codes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        found = doubts(engine, row["draft"])
        kind = row["kind"] if row["kind"] in _HONEST else row.get("error") or row["kind"]
        verdict = "clean" if not found else "failed" if any(f.fails for f in found) else "check"
        is_named = row["kind"] not in _HONEST and named(row, found)
        counts.update([(kind, ""), (kind, verdict)] + [(kind, "named")] * is_named)
        codes.update({(("honest" if row["kind"] in _HONEST else "wrong"), f.code) for f in found})
        if show and (row["kind"] in _HONEST) == bool(found):
            print(f"  {row['id']} {kind}: {row['draft']}\n    {row.get('why') or ''}")
            for f in found:
                print(
                    f"    {f.verdict} {f.code} {f.text!r}: {f.note} | {(f.true_text or '')[:200]}"
                )
    for kind in dict.fromkeys(kind for kind, _ in counts):
        of_kind = {what: counts[kind, what] for what in ("failed", "check", "clean", "named")}
        print(f"{name} {kind}: {counts[kind, '']}: {of_kind}")
    print(f"{name} codes: " + ", ".join(f"{k} {c} {n}" for (k, c), n in sorted(codes.items())))


def measure_facts(workspace: Workspace, rows: list[Row], show: bool) -> None:
    """Print how many facts of each kind are refused."""
    refused, total = Counter[str](), Counter[str](row["kind"] for row in rows)
    for row in rows:
        try:
            file_fact(workspace, RememberRequest(fact=row["fact"], source=row["cite"]), "ada")
            why = ""
        except UsageError as error:
            why = error.message
            refused[row["kind"]] += 1
        if show and (row["kind"] in _HONEST) == bool(why):
            print(f"  {row['id']} {row['kind']}: {row['fact']}: {why}")
    print("facts refused: " + ", ".join(f"{refused[k]} of {total[k]} {k}" for k in total))


def main() -> None:
    """Ingest the corpus, and measure each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", nargs="?", default="dev")
    parser.add_argument("--show", action="store_true", help="show what is not as expected")
    parser.add_argument("--only", help="measure only this file")
    options = parser.parse_args()
    with TemporaryDirectory() as work:
        workspace = Workspace(Path(work, "corpus.db"))
        lexical = IngestOptions(lexical_only=True)
        Admin(workspace).ingest([options.folder / "corpus"], lexical)
        with Engine(workspace) as engine:
            for name in ("drafts", "quotes", "figures", "facts"):
                path = options.folder / options.part / f"{name}.jsonl"
                if options.only not in (None, name):
                    continue
                rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                if name == "facts":
                    measure_facts(workspace, rows, options.show)
                else:
                    measure(engine, name, rows, options.show)


if __name__ == "__main__":
    main()
