"""Measure what replicas cost: the time to build and pull them, and the bytes that a change moves.

Run: python benchmarks/replicas.py FOLDER

The documents of the folder are ingested without vectors, and published to another folder: first,
with nothing changed, with one more document, and after a purge. Times are seconds of the processor.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from rolebundle.admin import Admin
from rolebundle.admin.purges import Selection, purge_documents
from rolebundle.admin.records import publish_replica
from rolebundle.ingest.options import IngestOptions
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import create_key, load_private_key


def measure(documents: Path, place: Path) -> None:
    """Print one line for each step and target."""
    folder = Path(shutil.copytree(documents, place / "documents"))
    create_key(place / "team.key")
    key = load_private_key(place / "team.key")
    options = PublishOptions(key, "office", timedelta(days=7), timedelta(days=7))
    share = PublishedFolder(str(place / "share"))
    with Admin(place / "team.db") as admin:

        def ingest() -> None:
            admin.ingest([folder], IngestOptions(lexical_only=True))

        def add() -> None:
            (folder / "one-more.md").write_text("# One more\n\nA document.\n", encoding="utf-8")
            ingest()

        steps: dict[str, Callable[[], object]] = {
            "first": ingest,
            "nothing changed": ingest,
            "one more document": add,
            "after a purge": lambda: purge_documents(admin.workspace, Selection(["one-more.md"])),
        }
        print(f"{'step':20}{'publish s':>10}{'moved':>14}{'pull s':>10}{'moved':>14}")
        for step, work in steps.items():
            work()
            start = process_time()
            published = publish_replica(admin.workspace, share, options, level="internal")
            middle = process_time()
            pulled = pull(share, place / "replica.db", key.public_key())
            print(
                f"{step:20}{middle - start:10.1f}{published.moved_bytes:14,}"
                f"{process_time() - middle:10.1f}{pulled.moved_bytes:14,}"
            )


def main() -> None:
    """Measure in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=Path)
    with TemporaryDirectory() as place:
        measure(parser.parse_args().documents, Path(place))


if __name__ == "__main__":
    main()
