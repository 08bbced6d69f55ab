"""Measure the share of passages that carry a flag of the scan, and of those that it restricts.

Run: python benchmarks/scan_rates.py [--show] FOLDER ...

Each folder is ingested into a new corpus, without vectors. A passage is restricted if its flags
take an action from it that it would have without them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from documentation import print_table

from rolebundle.admin import Admin
from rolebundle.ingest.options import IngestOptions
from rolebundle.policy.trust import Labels, Purpose
from rolebundle.storage.documents import document_names
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_of_documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="name each passage with a flag")
    options = parser.parse_args()
    for folder in options.folders:
        counts: Counter[str] = Counter()
        with TemporaryDirectory() as work:
            db = Path(work) / "corpus.db"
            with Admin(db) as admin:
                admin.ingest([folder], IngestOptions(lexical_only=True))
            with open_reader(db) as corpus:
                rows = [document.rowid for document in document_names(corpus)]
                for passage in passages_of_documents(corpus, rows):
                    allowed, without = (
                        Purpose().allowed_actions(Labels.of(passage.document, flags))
                        for flags in (passage.flags, ())
                    )
                    counts["passages"] += 1
                    counts["flagged"] += bool(passage.flags)
                    counts["restricted"] += allowed != without
                    counts.update(passage.flags)
                    if options.show and passage.flags:
                        print(passage.locator, *passage.flags)
        total = max(1, counts["passages"])
        goals = {"flagged": "at most 1%", "restricted": "at most 0.2%"}
        print(f"\n{folder}: {len(rows):,} documents")
        print_table(
            [
                (name, f"{count:,} ({count / total:.2%})", goals.get(name, ""))
                for name, count in counts.most_common()
            ]
        )


if __name__ == "__main__":
    main()
