"""Measure how the time of a governed answer grows with the corpus, from 10,000 chunks to a million.

Run: python benchmarks/growth.py [FOLDER]

The corpora are parts of the documentation. Above its size they have all of it and copies with
changed words, which are neither duplicates nor out of place. All corpora are measured in one run.
They stay in the working folder for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import blake2b
from itertools import count, groupby
from pathlib import Path

from documentation import add_arguments, gather, print_table, questions
from retrieve import Warm, build, warm

from rolebundle.admin import Admin
from rolebundle.contracts.document import DocumentMetadata
from rolebundle.errors import ConfigurationError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.content.stored_document import StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.corpus_state import increment_generation
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.opening import open_reader, open_writer

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
_BATCH = 4_000
_CHANGED = 4  # one of four distinct words is changed
_WORD = re.compile(r"[A-Za-z]{4,}")
_CHUNKS = (
    "SELECT d.document_id, d.title, s.source_id, d.document_type, c.headings, c.content, "
    "c.content_type, c.content_hash, c.start_line, c.end_line "
    "FROM chunk c JOIN document d ON d.id = c.document JOIN source s ON s.id = d.source "
    "ORDER BY c.document, c.ordinal"
)


def corpus_of(base: Path, path: Path, size: int) -> Path:
    """Make a corpus with vectors of about ``size`` chunks from the corpus at ``base``."""
    if not path.exists():
        making = path.with_suffix(".making")
        for suffix in ("", "-wal", "-shm"):
            Path(f"{making}{suffix}").unlink(missing_ok=True)
        _fill(base, making, size)
        with Admin(making) as admin:
            admin.indexes.embed()
        making.rename(path)
    # A corpus of an earlier version is migrated here. That drops its approximate indexes.
    with open_writer(path) as corpus:
        index = vector_index.active_index(corpus)
    if index is None or not any(part.approximate for part in index.parts):
        with Admin(path) as admin:
            try:
                admin.indexes.optimize()
            except ConfigurationError as refusal:
                # Below a limit the exact search is as fast.
                print(f"{size:,}: {refusal.message}", file=sys.stderr)
    return path


def _fill(base: Path, path: Path, size: int) -> None:
    with open_writer(path) as corpus:
        batch: list[tuple[StoredFile, list[StoredDocument]]] = []
        waiting = 0
        for document in _documents(base, size):
            name = document.metadata.document_id
            file = StoredFile(f"/grown/{name}", document.metadata.uri, "-", "-")
            batch.append((file, [document]))
            waiting += len(document.chunks)
            if waiting >= _BATCH:
                _store(corpus, batch)
                batch, waiting = [], 0
        _store(corpus, batch)


def _store(corpus: Corpus, batch: list[tuple[StoredFile, list[StoredDocument]]]) -> None:
    with corpus.writing():
        store.put_files(corpus, batch)
        increment_generation(corpus)


def _documents(base: Path, size: int) -> Iterator[StoredDocument]:
    """Documents of ``size`` chunks in all: a part of the base, or all of it and changed copies."""
    with open_reader(base) as corpus:
        rows = corpus.rows(_CHUNKS)
    share = size / len(rows)
    remaining = size
    for copy in count():
        words: dict[str, str] = {}
        for document_id, group in groupby(rows, key=lambda row: str(row[0])):
            if share < 1 and _share(document_id) >= share:
                continue
            chunks = list(group)
            yield _document(document_id, chunks, copy, words)
            remaining -= len(chunks)
            if remaining <= 0:
                return
        if share < 1:
            return


def _document(
    document_id: str, rows: list[tuple[object, ...]], copy: int, words: dict[str, str]
) -> StoredDocument:
    _, title, source, kind, *_ = rows[0]
    name = f"{copy}/{document_id}"
    metadata = DocumentMetadata(
        document_id=name,
        source_id=str(source),
        title=_changed(str(title), copy, words),
        uri=name,
        document_type=str(kind),
    )
    chunks = tuple(
        StoredChunk(
            chunk_id=f"{name}#{ordinal}",
            headings=tuple(_changed(heading, copy, words) for heading in json.loads(str(headings))),
            content=_changed(str(content), copy, words),
            content_type=content_type,  # type: ignore[arg-type]
            content_hash=f"{copy}-{content_hash}",
            start_line=int(str(start)),
            end_line=int(str(end)),
        )
        for ordinal, (*_, headings, content, content_type, content_hash, start, end) in enumerate(
            rows
        )
    )
    return StoredDocument(metadata, chunks)


def _changed(text: str, copy: int, words: dict[str, str]) -> str:
    """Change some distinct words of ``text``, the same ones everywhere in a copy."""
    if copy == 0:
        return text

    def replacement(match: re.Match[str]) -> str:
        word = match[0]
        if word not in words:
            number = int.from_bytes(blake2b(f"{copy}{word}".encode(), digest_size=4).digest())
            words[word] = (
                f"{word[:-2]}{_LETTERS[copy]}{word[-2:]}" if number % _CHANGED == 0 else word
            )
        return words[word]

    return _WORD.sub(replacement, text)


_LETTERS = "-qxzjkvwy"


def _share(document_id: str) -> float:
    return int.from_bytes(blake2b(document_id.encode(), digest_size=8).digest()) / 2**64


def _rows(results: list[Warm]) -> list[tuple[str, str, str]]:
    rows = []
    for result in results:
        governed, naive = result.governed, result.naive
        rows.append(
            (
                f"{result.chunks:,} chunks",
                f"governed {governed.median:.1f} ms (p95 {governed.p95:.1f}), lexical only "
                f"{result.lexical_only.median:.1f} ms, naive pair {naive.median:.1f} ms, "
                f"governed ÷ naive **{governed.median / naive.median:.2f}**",
                {300_000: "≤ 0.45", 1_000_000: "≤ 0.25"}.get(round(result.chunks, -5), ""),
            )
        )
    first, last = results[0], results[-1]
    growth = last.governed.median / first.governed.median
    grown = last.chunks / first.chunks
    return [
        *rows,
        (f"**growth of the median** over {grown:.0f} ×", f"**{growth:.1f} ×**", "≤ 12 ×"),
    ]


def plot(results: list[Warm]) -> str:
    """Plot latency against corpus size as SVG, both axes logarithmic."""
    from math import log10

    width, height, edge = 640, 360, 56
    sizes = [result.chunks for result in results]
    lines = {
        "governed": ("#1f6feb", [result.governed.median for result in results]),
        "naive pair": ("#d1242f", [result.naive.median for result in results]),
    }
    low, high = log10(sizes[0]), log10(sizes[-1])
    times = [time for _, line in lines.values() for time in line]
    floor, top = log10(min(times)) - 0.1, log10(max(times)) + 0.1

    def at(size: float, time: float) -> tuple[float, float]:
        x = edge + (log10(size) - low) / (high - low) * (width - 2 * edge)
        return x, height - edge - (log10(time) - floor) / (top - floor) * (height - 2 * edge)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for size in sizes:
        x, _ = at(size, times[0])
        parts.append(
            f'<text x="{x:.0f}" y="{height - edge + 20}" text-anchor="middle">{size:,}</text>'
        )
    for name, (colour, line) in lines.items():
        points = [at(size, time) for size, time in zip(sizes, line, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), time in zip(points, line, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            parts.append(
                f'<text x="{x:.0f}" y="{y - 8:.0f}" text-anchor="middle">{time:.0f}</text>'
            )
        x, y = points[-1]
        parts.append(
            f'<text x="{x - 8:.0f}" y="{y + 20:.0f}" text-anchor="end" fill="{colour}">'
            f"{name}, ms</text>"
        )
    parts.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">chunks</text></svg>')
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="CHUNKS")
    parser.add_argument("--questions", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--build-only", action="store_true", help="only make the corpora")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the plot there, as SVG")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    place = gather(arguments.folder, arguments.sample)
    base = build(place)
    paths = [
        corpus_of(base, place.corpus(f"grown-{size}"), size) for size in sorted(arguments.sizes)
    ]
    if arguments.build_only:
        return
    tasks = questions(arguments.questions)
    results = [warm(path, tasks, arguments.rounds) for path in paths]
    if arguments.plot:
        arguments.plot.write_text(plot(results), encoding="utf-8")
    if arguments.json:
        print(
            json.dumps(
                {"sizes": [asdict(result) for result in results], "load": os.getloadavg()}, indent=2
            )
        )
        return
    print_table(_rows(results))
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
