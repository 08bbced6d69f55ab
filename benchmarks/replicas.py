"""Measure what replicas cost: the time to build them, and the bytes that each change moves.

Run: python benchmarks/replicas.py [FOLDER] [--documents FOLDER] [--corpus FILE]

The documentation is spread over two scopes. One agent sees both, the other one of them. 130 of its
documents are copied as files, which are then changed, removed and purged. Each publish is measured
in a process of its own. Ratios are of processor seconds: on a busy machine the clock is unfair. The
transports get the same replicas: a folder, a static web host, sqlite3_rsync between two files of
this machine, and Litestream with a folder as its store.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, groupby
from pathlib import Path
from pkgutil import resolve_name
from statistics import median
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from documentation import Missing, Workplace, add_arguments, build, gather, print_table

from rolebundle.admin import Admin
from rolebundle.admin.purges import PurgeSelection, purge_documents
from rolebundle.admin.replicas import publish_replica, pull_replica
from rolebundle.ingest.options import IngestOptions
from rolebundle.policy.access import set_policy
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.signatures import create_key, load_private_key
from rolebundle.replication.transports.blocks import BLOCK_BYTES, DATABASE, DIGEST_BYTES
from rolebundle.replication.transports.folder import FolderTransport
from rolebundle.replication.transports.http import HttpTransport
from rolebundle.replication.transports.litestream import LitestreamTransport
from rolebundle.storage import digests
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.files.partial import sync_file
from rolebundle.storage.files.sqlite_programs import sqlite3_rsync
from rolebundle.storage.location import staged_replica
from rolebundle.storage.opening import open_reader, open_writer

_POLICY = {
    "all": {"scopes": [], "access_level": "internal"},
    "half": {"scopes": ["even"], "access_level": "internal"},
}
_EDITED = 130
"""More than the 128 segments of an index of words that FTS5 merges at once."""
PAGE_BYTES = 4 << 10
_COPIES = 3
BLOCK_SIZES = (4 << 10, BLOCK_BYTES, 64 << 10)
_PUBLISH_PARTS = {
    "verify the last": "rolebundle.replication.staged.verify_replica",
    "list what it held": "rolebundle.replication.staged.content_keys",
    "read, compare, write": "rolebundle.storage.replicas.visible_copy.synchronize",
    "compact": "rolebundle.storage.replicas.replica_file.compact",
    "digest of the content": "rolebundle.storage.replicas.visible_content.content_digest",
    "digest of all rows": "rolebundle.storage.replicas.replica_file.stored_digest",
    "SHA-256": "rolebundle.replication.publish.sha256_of",
    "move": "rolebundle.replication.transports.folder.FolderTransport.push",
}
_PULL_PARTS = {
    "fetch": "rolebundle.replication.transports.folder.FolderTransport.fetch",
    "verify": "rolebundle.replication.pull.verify_replica",
}
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_SENT = re.compile(r"sent ([\d,]+) bytes, received ([\d,]+) bytes")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work took, in seconds by the clock and of the processor.

    ``parts`` are processor seconds. ``peak_mb`` is the peak of resident memory.
    """

    clock: float
    processor: float
    peak_mb: int
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class Step:
    """A publish to one target, and what its replica moved from one file to the next."""

    name: str
    cost: Cost
    file_bytes: int
    pages: dict[str, int]
    """Table or index → its pages that are new or changed."""
    moved: dict[str, int]
    """Transport → bytes."""
    pull: Cost | None = None


@dataclass(slots=True)
class Result:
    """All figures. ``chunks`` and ``steps`` are by agent."""

    corpus_bytes: int
    load: float
    chunks: dict[str, int] = field(default_factory=dict)
    lexical_ingest: Cost | None = None
    copy_and_hash: Cost | None = None
    steps: dict[str, list[Step]] = field(default_factory=dict)
    sequence: list[int] = field(default_factory=list)
    """Bytes that sqlite3_rsync moved in each of many publishes of one changed document."""


# -- the corpus ------------------------------------------------------------------------------------


def prepare(base: Path, place: Path) -> tuple[Path, list[Path]]:
    """Copy a corpus, spread it over two scopes, add the documents that are changed later.

    Returns:
        The corpus, and the files of these documents.
    """
    path, files = place / "replicas.db", place / "edited"
    for old in place.glob("replicas.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    with open_reader(base) as corpus, corpus.reading():
        shutil.copyfile(base, path)
        texts = list(
            _documents(
                corpus.rows("SELECT document, content FROM chunk ORDER BY document, ordinal")
            )
        )
    with open_writer(path) as writer, writer.writing():
        writer.run("UPDATE document SET scope = iif(file % 2, 'odd', 'even')")
        digests.write_all(writer)
    _set_policy(path)
    return path, _edit_files(path, files, texts)


def _set_policy(path: Path) -> None:
    with open_writer(path) as corpus:
        set_policy(corpus, json.dumps(_POLICY), "json", "", "2026-11-01T00:00:00Z")
    with Admin(path) as admin:
        # As `rolebundle policy set` leaves it.
        admin.workspace.recorder.begin(admin.workspace.corpus)


def _documents(rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """Texts of documents with 4 to 12 passages, always the same ones."""
    for _, group in groupby(rows, key=lambda row: row[0]):
        passages = [str(content) for _, content in group]
        if 4 <= len(passages) <= 12:
            yield "\n\n".join(passages)


def _edit_files(corpus: Path, folder: Path, texts: list[str]) -> list[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    chosen = sorted(texts, key=lambda text: blake2b(text.encode()).digest())[:_EDITED]
    files = []
    for number, text in enumerate(chosen):
        files.append(folder / f"{number}.txt")
        files[-1].write_text(text, encoding="utf-8")
    _ingest(corpus, folder, scope="even")
    return files


def _ingest(path: Path, folder: Path, **flags: str) -> None:
    with Admin(path) as admin:
        # A replica has no approximate index.
        admin.ingest([folder], IngestOptions(flags=flags, optimize=False))


def change(files: list[Path], note: str) -> None:
    """Add a sentence in the middle of each document."""
    for file in files:
        paragraphs = file.read_text(encoding="utf-8").split("\n\n")
        paragraphs[len(paragraphs) // 2] += f" This was amended for {note} of the manual."
        file.write_text("\n\n".join(paragraphs), encoding="utf-8")


# -- measuring -------------------------------------------------------------------------------------


def measured(work: Callable[[], object], parts: dict[str, str] | None = None) -> Cost:
    """Do something in a process of its own."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            times: dict[str, float] = {}
            with ExitStack() as stack:
                for name, target in (parts or {}).items():
                    stack.enter_context(_timed(target, name, times))
                work()
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(times, stream)
            code = 0
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    started = perf_counter()
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit("a measured process failed")
    return Cost(
        perf_counter() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss // 1024,
        pickle.loads(content),
    )


@contextmanager
def _timed(target: str, name: str, times: dict[str, float]) -> Iterator[None]:
    """Add the processor seconds of a function to ``times``."""
    original = resolve_name(target)

    def timed(*arguments: Any, **keywords: Any) -> Any:
        before = process_time()
        try:
            return original(*arguments, **keywords)
        finally:
            times[name] = times.get(name, 0.0) + process_time() - before

    with patch(target, timed):
        yield


class Publications:
    """A corpus that is published to a folder again and again, and what moves its replica."""

    def __init__(self, corpus: Path, place: Path, agent: str) -> None:
        self.corpus = corpus
        self._agent = agent
        self._place = place / agent
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir()
        self._folder = FolderTransport(str(self._place / "folder"))
        self.staged = staged_replica(corpus, self._folder.target)
        key = place / "key"
        if not key.exists():
            create_key(key)
        self._key = load_private_key(key)

    def publish(self) -> None:
        """Publish to the folder."""
        options = PublishOptions("benchmark", timedelta(days=7), timedelta(days=7))
        with Admin(self.corpus) as admin:
            publish_replica(admin.workspace, self._folder, self._key, options, agent=self._agent)

    def pull(self) -> None:
        """Pull from the folder."""
        with Admin(self._place / "reader.db") as admin:
            pull_replica(admin.workspace, self._folder, self._key.public_key(), ())

    def step(self, name: str, *, pull: bool = True) -> Step:
        """Publish, and move the replica with every transport."""
        former = self._place / "former.db"
        former.touch()
        cost = measured(self.publish, _PUBLISH_PARTS)
        different = changed_pages(former, self.staged)
        size = self.staged.stat().st_size
        moved = {"copy": size, **self._moved(former, different)}
        step = Step(
            name,
            cost,
            size,
            pages_by_name(self.staged, different),
            moved,
            measured(self.pull, _PULL_PARTS) if pull else None,
        )
        shutil.copyfile(self.staged, former)
        print(f"{self._agent}: {name}: {cost.processor:.1f} s, {moved}", file=sys.stderr)
        return step

    def _moved(self, former: Path, different: list[int]) -> dict[str, int]:
        copy = self._place / "copy.db"
        moved = {}
        for size in BLOCK_SIZES:
            blocks = {number * PAGE_BYTES // size for number in different}
            digests = -(-self.staged.stat().st_size // size) * DIGEST_BYTES
            moved[f"folder, blocks of {size >> 10} KiB"] = len(blocks) * size + digests
        with static_host(Path(self._folder.target)) as url:
            shutil.copyfile(former, copy)
            moved["http"] = HttpTransport(url).fetch(copy)
        shutil.copyfile(former, copy)
        moved["sqlite3_rsync"] = rsync(self.staged, copy)
        # Litestream keeps its working copy beside the replica.
        working = self._place / "litestream-replica" / DATABASE
        working.parent.mkdir(exist_ok=True)
        shutil.copyfile(self.staged, working)
        store = LitestreamTransport(f"litestream+file://{self._place / 'litestream'}")
        moved["litestream"] = store.push(working, b"")
        return moved


def changed_pages(former: Path, replica: Path) -> list[int]:
    """The numbers of the pages that are new or changed; the first one is 0."""
    different: list[int] = []
    with former.open("rb") as old, replica.open("rb") as new:
        for number in count():
            page = new.read(PAGE_BYTES)
            if not page:
                return different
            if page != old.read(PAGE_BYTES):
                different.append(number)
    raise AssertionError


def pages_by_name(replica: Path, different: list[int]) -> dict[str, int]:
    """Table or index → how many of these pages it has; the most first."""
    chosen = json.dumps([number + 1 for number in different])
    with open_reader(replica) as corpus:
        rows = corpus.rows(
            "SELECT name, count(*) FROM dbstat WHERE pageno IN (SELECT value FROM json_each(?)) "
            "GROUP BY name ORDER BY 2 DESC",
            (chosen,),
        )
    return dict(rows)


def rsync(origin: Path, replica: Path) -> int:
    """Make a file equal to another one. Return how many bytes the two ends sent each other."""
    program = sqlite3_rsync()
    if program is None:
        raise Missing("sqlite3_rsync is not installed")
    result = subprocess.run(
        [program, str(origin), str(replica), "-v"], capture_output=True, text=True, check=True
    )
    found = _SENT.search(result.stdout)
    assert found, result.stdout + result.stderr
    return sum(int(number.replace(",", "")) for number in found.groups())


@contextmanager
def static_host(folder: Path) -> Iterator[str]:
    """Serve a folder with ranges."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = folder / Path(self.path).name
            size = path.stat().st_size
            requested_range = _RANGE.fullmatch(self.headers.get("Range", ""))
            start, last = (
                (int(requested_range[1]), int(requested_range[2]))
                if requested_range
                else (0, size - 1)
            )
            self.send_response(206 if requested_range else 200)
            if requested_range:
                self.send_header("Content-Range", f"bytes {start}-{last}/{size}")
            self.send_header("Content-Length", str(last + 1 - start))
            self.end_headers()
            if self.command == "HEAD":
                return
            with path.open("rb") as stream:
                stream.seek(start)
                while start <= last and (piece := stream.read(min(1 << 20, last + 1 - start))):
                    self.wfile.write(piece)
                    start += len(piece)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- what is measured ------------------------------------------------------------------------------


def measure(base: Path, place: Path, documents: Path | None, sequence: int) -> Result:
    """Measure everything; see the module."""
    path, files = prepare(base, place)
    result = Result(corpus_bytes=path.stat().st_size, load=os.getloadavg()[0])
    if documents is not None:
        scratch = place / "lexical.db"
        scratch.unlink(missing_ok=True)
        result.lexical_ingest = measured(lambda: _ingest_lexical(scratch, documents))
    all_documents = Publications(path, place, "all")
    half = Publications(path, place, "half")
    steps = result.steps
    steps["all"] = [all_documents.step("the first")]
    steps["half"] = [half.step("the first")]
    for name, publications in (("all", all_documents), ("half", half)):
        with open_reader(publications.staged) as replica:
            result.chunks[name] = corpus_counts(replica).chunks
    copy = place / "copy.db"
    # The least of several: the first one also fills the cache of the system.
    copies = [measured(lambda: _copy_and_hash(all_documents.staged, copy)) for _ in range(_COPIES)]
    result.copy_and_hash = min(copies, key=lambda cost: cost.processor)
    copy.unlink()
    steps["all"].append(all_documents.step("nothing changed"))
    for change_name, changed in (
        ("1 document changed", files[:1]),
        ("10 documents changed", files[:10]),
        ("100 documents changed", files[:100]),
    ):
        change(changed, change_name)
        _ingest(path, files[0].parent, scope="even")
        steps["all"].append(all_documents.step(change_name, pull=len(changed) == 1))
        if len(changed) == 1:
            steps["half"].append(half.step(change_name))
    files[-1].unlink()
    _ingest(path, files[0].parent, scope="even")
    steps["all"].append(all_documents.step("1 document removed", pull=False))
    with Admin(path) as admin:
        purge_documents(admin.workspace, PurgeSelection([str(files[-2])]))
    steps["all"].append(all_documents.step("1 document purged", pull=False))
    result.sequence = publish_often(files[:-2], place, sequence)
    return result


def publish_often(files: list[Path], place: Path, times: int) -> list[int]:
    """Publish a corpus of these documents alone, one of them changed each time.

    An index of words has one segment more after each publish, whatever its size.

    Returns:
        How many bytes sqlite3_rsync moves for each publish.
    """
    path, former = place / "often.db", place / "often-former.db"
    for old in place.glob("often.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    _ingest(path, files[0].parent)
    _set_policy(path)
    publications = Publications(path, place, "all")
    publications.publish()
    moved = []
    for number in range(times):
        shutil.copyfile(publications.staged, former)
        change([files[number % len(files)]], f"edition {number}")
        _ingest(path, files[0].parent)
        publications.publish()
        moved.append(rsync(publications.staged, former))
    return moved


def _ingest_lexical(path: Path, documents: Path) -> None:
    with Admin(path) as admin:
        options = IngestOptions(workers=os.cpu_count() or 1, lexical_only=True)
        admin.ingest([documents], options)


def _copy_and_hash(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    sync_file(target)
    sha256_of(target)


def report(result: Result) -> None:
    """Print the tables."""
    assert result.copy_and_hash
    first = result.steps["all"][0]
    lines = [
        ("passages, of both agents", f"{result.chunks['all']:,} and {result.chunks['half']:,}"),
        ("size of the corpus", f"{result.corpus_bytes / 1e6:,.1f} MB"),
    ]
    for name, steps in result.steps.items():
        lines.append((f"size of the replica, {name}", f"{steps[0].file_bytes / 1e6:,.1f} MB"))
    per = 100_000 / result.chunks["all"]
    built, pulled = first.cost, first.pull
    lines.append(("build per 100,000 passages", f"{built.processor * per:.1f} processor seconds"))
    if result.lexical_ingest:
        ratio = built.processor / result.lexical_ingest.processor
        lines.append(("build ÷ lexical ingest of the same documents", f"{ratio:.2f}"))
    if pulled:
        ratio = pulled.processor / result.copy_and_hash.processor
        lines.append(("first pull ÷ copy of the file and SHA-256", f"{ratio:.1f}"))
    for name, steps in result.steps.items():
        for step in steps:
            lines.append((f"{name}: {step.name}: publish", _seconds(step.cost)))
            if step.pull:
                lines.append((f"{name}: {step.name}: pull", _seconds(step.pull)))
    print_table([(label, figure, "") for label, figure in lines])
    for name, steps in result.steps.items():
        print(f"\n| bytes moved, agent {name} | {' | '.join(steps[0].moved)} | pages |")
        print("| --- " * (len(steps[0].moved) + 2) + "|")
        for step in steps:
            cells = [f"{moved:,} ({moved / step.file_bytes:.3%})" for moved in step.moved.values()]
            print(f"| {step.name} | {' | '.join(cells)} | {sum(step.pages.values()):,} |")
    for step in result.steps["all"][1:4]:
        names = ", ".join(f"{name} {pages}" for name, pages in list(step.pages.items())[:14])
        print(f"\nPages, {step.name}: {names}")
    if result.sequence:
        most = max(result.sequence)
        print(
            f"\n{len(result.sequence)} publishes of one changed document each, sqlite3_rsync: "
            f"median {median(result.sequence):,.0f} bytes, most {most:,} "
            f"(publish {result.sequence.index(most) + 1})"
        )
    print(f"\nLoad {result.load:.1f} to {os.getloadavg()[0]:.1f}.")


def _seconds(cost: Cost) -> str:
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cost.parts.items())
    return (
        f"{cost.processor:.1f} processor seconds ({parts}), {cost.clock:.0f} s by the clock, "
        f"{cost.peak_mb} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument(
        "--documents", type=Path, help="a folder to ingest instead of the documentation"
    )
    parser.add_argument(
        "--corpus", type=Path, help="a corpus with vectors, which is copied; nothing is ingested"
    )
    parser.add_argument("--sequence", type=int, default=_EDITED, help="how many publishes in a row")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    place, documents = arguments.folder / "replicas", arguments.documents
    place.mkdir(parents=True, exist_ok=True)
    base = arguments.corpus
    if documents is not None and base is None:
        base = build(Workplace(place, documents, 0, 0))
    elif base is None:
        gathered = gather(arguments.folder, arguments.sample)
        base, documents = build(gathered), gathered.files
    result = measure(base, place, documents, arguments.sequence)
    if arguments.json:
        print(json.dumps(asdict(result)))
    else:
        report(result)


if __name__ == "__main__":
    main()
