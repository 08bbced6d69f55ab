"""Measure the time of warm answers against a naive search and against Tantivy, in one run.

Run: python benchmarks/speed.py FOLDER QUESTIONS [--sizes 20000 100000 300000 1000000]

FOLDER has real documentation. QUESTIONS has one question a line, or JSON objects with `question`.
A corpus of a given size is a part of the documentation or, above its size, all of it and copies in
which a quarter of the words is changed. Each way to answer gets the same questions, one after the
other, so that drift affects all alike: first each question once, then again.

The naive pair is what a user would write in an hour: an OR query for 100 rows of an FTS5 table, and
an exact search for 100 rows of a vec0 table, over the same chunks, in a file of its own. Tantivy
(`pip install tantivy`) answers the same OR queries; without it, its column is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import count, groupby
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

# As the command line does, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import apsw
import sqlite_vec

from rolebundle.admin import Admin
from rolebundle.admin.indexes import embed
from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.engine import Engine
from rolebundle.resources import demo_overlays
from rolebundle.storage import store
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import corpus_counts, increment_generation
from rolebundle.storage.digests import content_hash
from rolebundle.storage.documents import StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer

SIZES = (20_000, 100_000, 300_000, 1_000_000)
ROLE = "mossline-security-reviewer"
ROWS = 100
_BATCH = 200  # documents stored in one transaction
_WORD = re.compile(r"[A-Za-z]{4,}")
_CHUNKS = (
    "SELECT d.document_id, d.title, s.source_id, d.document_type, c.headings, c.content, "
    "c.content_type, c.start_line, c.end_line "
    "FROM chunk c JOIN document d ON d.id = c.document JOIN source s ON s.id = d.source "
    "ORDER BY c.document, c.ordinal"
)


def grown(base: Path, path: Path, size: int) -> Path:
    """Make a corpus with vectors of about ``size`` chunks from the corpus at ``base``."""
    if path.exists():
        return path
    making = path.with_suffix(".making")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{making}{suffix}").unlink(missing_ok=True)
    with open_writer(making) as corpus:
        documents = _documents(base, size)
        while batch := [document for _, document in zip(range(_BATCH), documents, strict=False)]:
            with corpus.writing():
                files = (
                    StoredFile(f"/grown/{d.metadata.document_id}", d.metadata.uri, "-", "-")
                    for d in batch
                )
                store.put_files(corpus, [(file, [d]) for file, d in zip(files, batch, strict=True)])
                increment_generation(corpus)
        # As at the end of an ingest.
        for compartment in visible_compartments(corpus):
            has_more = True
            while has_more:
                with corpus.writing():
                    has_more = corpus.lexical.merge(corpus, compartment.id)
    with Admin(making) as admin:
        embed(admin.workspace)
    making.rename(path)
    return path


def _documents(base: Path, size: int) -> Iterator[StoredDocument]:
    with open_reader(base) as corpus:
        rows = corpus.rows(_CHUNKS)
    remaining = size
    for copy in count():
        words: dict[str, str] = {}
        for document_id, group in groupby(rows, key=lambda row: str(row[0])):
            if size < len(rows) and _share(document_id) >= size / len(rows):
                continue
            document = _document(f"{copy}/{document_id}", list(group), copy, words)
            yield document
            remaining -= len(document.chunks)
            if remaining <= 0:
                return
        if size < len(rows):
            return


def _document(
    name: str, rows: list[tuple[object, ...]], copy: int, words: dict[str, str]
) -> StoredDocument:
    _, title, source, kind, *_ = rows[0]

    def changed(text: object) -> str:
        return _WORD.sub(lambda match: _changed(match[0], copy, words), str(text))

    metadata = DocumentMetadata(
        document_id=name,
        source_id=str(source),
        title=changed(title),
        uri=name,
        document_type=str(kind),
    )
    chunks = tuple(
        StoredChunk(
            chunk_id=f"{name}#{ordinal}",
            headings=tuple(changed(heading) for heading in json.loads(str(headings))),
            content=changed(content),
            content_type=content_type,  # type: ignore[arg-type]
            content_hash=content_hash(changed(content)),
            start_line=int(str(start)),
            end_line=int(str(end)),
        )
        for ordinal, (*_, headings, content, content_type, start, end) in enumerate(rows)
    )
    return StoredDocument(metadata, chunks)


def _changed(word: str, copy: int, words: dict[str, str]) -> str:
    """A quarter of the distinct words is changed, alike everywhere in a copy."""
    if copy and word not in words:
        number = blake2b(f"{copy}{word}".encode(), digest_size=4).digest()[0]
        words[word] = f"{word[:-2]}{'qxzjkvwy'[copy % 8]}{word[-2:]}" if number < 64 else word
    return words.get(word, word)


def _share(name: str) -> float:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) / 2**64


class Naive:
    """An FTS5 table and a vec0 table over the chunks of a corpus, and Tantivy if it is there."""

    def __init__(self, corpus: Path, path: Path, provider: EmbeddingProvider) -> None:
        self.provider = provider
        self.db = apsw.Connection(str(path))
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        with open_reader(corpus) as reader:
            texts = [str(row[0]) for row in reader.rows("SELECT content FROM chunk ORDER BY id")]
        if not self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'words'").fetchall():
            self._fill(texts)
        self.searcher = _tantivy(texts)

    def _fill(self, texts: Sequence[str]) -> None:
        width = self.provider.identity.dimensions
        with self.db:
            self.db.execute(
                "CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter unicode61');"
                f"CREATE VIRTUAL TABLE vectors USING vec0(embedding float[{width}])"
            )
            for start in range(0, len(texts), 1_000):
                part = texts[start : start + 1_000]
                rows = range(start + 1, start + 1 + len(part))
                self.db.executemany(
                    "INSERT INTO words(rowid, text) VALUES (?, ?)", zip(rows, part, strict=True)
                )
                vectors = self.provider.embed_passages(part)
                self.db.executemany(
                    "INSERT INTO vectors(rowid, embedding) VALUES (?, ?)",
                    ((row, bytes(v.tobytes())) for row, v in zip(rows, vectors, strict=True)),
                )

    def words(self, task: str) -> object:
        """The first rows of an OR query."""
        expression = " OR ".join(f'"{word}"' for word in re.findall(r"\w{3,}", task))
        return self.db.execute(
            f"SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT {ROWS}",
            (expression,),
        ).fetchall()

    def pair(self, task: str) -> object:
        """The first rows of the OR query and of the exact search."""
        vector = bytes(self.provider.embed_queries([task])[0].tobytes())
        return self.words(task), self.db.execute(
            f"SELECT rowid, distance FROM vectors WHERE embedding MATCH ? AND k = {ROWS}",
            (vector,),
        ).fetchall()


def _tantivy(texts: Sequence[str]) -> Callable[[str], object] | None:
    try:
        import tantivy
    except ImportError:
        return None
    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem").build()
    index = tantivy.Index(schema)
    writer = index.writer()
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    return lambda task: searcher.search(
        index.parse_query(" ".join(re.findall(r"\w{3,}", task)), ["text"]), ROWS
    )


def measure(corpus: Path, tasks: Sequence[str], work: Path) -> None:
    """Print the table of one corpus."""
    with Engine(corpus, (demo_overlays(),)) as engine:
        provider = engine.workspace.query_provider(engine.workspace.corpus)
        naive = Naive(corpus, work / f"{corpus.stem}-naive.db", provider)
        role = RetrievalRequest(task="-", role=ROLE)

        def ask(request: RetrievalRequest) -> Callable[[str], object]:
            return lambda task: engine.retrieve(request.model_copy(update={"task": task}))

        plain = role.model_copy(update={"role": None})
        ways: dict[str, Callable[[str], object]] = {
            "role, both lanes": ask(role),
            "no role, both lanes": ask(plain),
            "role, words only": ask(role.model_copy(update={"lexical_only": True})),
            "no role, words only": ask(plain.model_copy(update={"lexical_only": True})),
            "naive pair": naive.pair,
            "naive OR query": naive.words,
        }
        if naive.searcher:
            ways["Tantivy OR query"] = naive.searcher
        chunks = corpus_counts(engine.workspace.corpus).chunks
        for answer in ways.values():
            answer("warm up the caches of the process")
        print(f"\n{chunks:,} chunks, {len(tasks)} questions; milliseconds")
        print("| | first: median | p95 | CPU | again: median | p95 | CPU |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        seen: dict[str, list[list[tuple[float, float]]]] = {name: [[], []] for name in ways}
        for turn in (0, 1):
            for task in tasks:
                for name, answer in ways.items():
                    wall, cpu = perf_counter(), process_time()
                    answer(task)
                    seen[name][turn].append((perf_counter() - wall, process_time() - cpu))
        for name, turns in seen.items():
            print(f"| {name} | " + " | ".join(_figures(turn) for turn in turns) + " |")
        for ours, theirs in (
            ("role, both lanes", "naive pair"),
            ("role, words only", "naive OR query"),
            ("no role, words only", "Tantivy OR query"),
        ):
            if theirs in seen:
                ratios = [
                    _median(a) / _median(b) for a, b in zip(seen[ours], seen[theirs], strict=True)
                ]
                print(f"{ours} ÷ {theirs}: first {ratios[0]:.2f}, again {ratios[1]:.2f}")


def _median(turn: list[tuple[float, float]]) -> float:
    return median(wall for wall, _ in turn)


def _figures(turn: list[tuple[float, float]]) -> str:
    walls = sorted(wall for wall, _ in turn)
    cpu = median(cpu for _, cpu in turn)
    return " | ".join(
        f"{1000 * value:.1f}" for value in (_median(turn), walls[int(0.95 * len(walls))], cpu)
    )


def questions(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        json.loads(line)["question"] if line.startswith("{") else line for line in lines if line
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="documentation")
    parser.add_argument("questions", type=Path, help="one question a line, or JSON lines")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="CHUNKS")
    parser.add_argument("--work", type=Path, help="keep the corpora there for the next run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        base = work / "base.db"
        started = perf_counter()
        with Admin(base) as admin:
            admin.ingest([arguments.folder])
        print(f"ingest of the documentation: {perf_counter() - started:.1f} s", file=sys.stderr)
        for size in arguments.sizes:
            measure(grown(base, work / f"{size}.db", size), questions(arguments.questions), work)
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
