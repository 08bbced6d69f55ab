"""Documents with unique words, and a search for these words in every byte of a corpus."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_lowercase

import numpy as np

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from support.corpora import chunk

WIDTH = 8
"""Length of a trace in bytes: two floats of a vector, or the inner letters of a word."""
_HAN = "".join(map(chr, range(0x4E00, 0x9F00)))
"""There are so many of them that a trace of three does not occur by chance."""
_ENDINGS = ("", "s", "ing", "ations", "ed")


@dataclass(frozen=True)
class Canary:
    """A document, and traces of it that must not be left after a purge."""

    document: StoredDocument
    traces: frozenset[bytes]


def make_canary(chance: Random, common: Sequence[str], number: int) -> Canary:
    """Make a document with unique words in each of its fields.

    A trace of a word is from its middle: FTS5 leaves out the letters that a word has in common
    with the one before it in its index, and the stemmer cuts and changes endings.
    """
    words: list[str] = []

    def word() -> str:
        letters = _HAN if chance.random() < 0.2 else ascii_lowercase
        core = "".join(chance.choices(letters, k=16))
        words.append(core)
        text_word = core + (chance.choice(_ENDINGS) if letters == ascii_lowercase else "")
        return text_word.capitalize() if chance.random() < 0.3 else text_word

    def text(length: int) -> str:
        words_of_text = [*chance.choices(common, k=length), word(), word()]
        chance.shuffle(words_of_text)
        return " ".join(words_of_text)

    name = f"{word()}/{word()}-{number}.md"
    source = word() if chance.random() < 0.3 else chance.choice(("wiki", "mail"))
    metadata = DocumentMetadata(
        document_id=f"{source}/{name}",
        source_id=source,
        title=text(3),
        uri=f"file:{name}",
        scope=word() if chance.random() < 0.1 else chance.choice(("shared", "hr", "board")),
        tags=(word(),),
        applicable_roles=(word(),),
        retrieval_hints=(text(2),),
        supersedes=(word(),) if chance.random() < 0.3 else (),
    )
    chunks = tuple(
        chunk(
            f"{metadata.document_id}#{word()}",
            text(chance.choice((5, 40, 150))),
            headings=(word(), text(1)),
            tags=(word(),),
            start_line=line,
            end_line=line,
        )
        for line in range(1, 2 + chance.randrange(3))
    )
    return Canary(
        StoredDocument(metadata, chunks),
        frozenset(
            trace
            for core in words
            for trace in (core[5:13].encode()[:WIDTH], core[7:15].encode()[:WIDTH])
        )
        | {item.content_hash[4:12].encode() for item in chunks},
    )


def vector_traces(corpus: Corpus, document_ids: Iterable[str]) -> set[bytes]:
    """Return traces of the documents' vectors: first floats, inner floats, and hashes."""
    targets = set(document_ids)
    traces: set[bytes] = set()
    for document_id, vector, vector_hash in corpus.rows(
        "SELECT d.document_id, e.vector, e.vector_hash FROM embedded e "
        "JOIN chunk c ON c.id = e.chunk JOIN document d ON d.id = c.document"
    ):
        if document_id in targets:
            traces |= {vector[:WIDTH], vector[16 : 16 + WIDTH], vector_hash[4:12].encode()}
    return traces


def files_of(db: Path) -> list[Path]:
    """Return all files whose name begins with the corpus's name, and those in such folders."""
    beside = [path for path in db.parent.iterdir() if path.name.startswith(db.name)]
    within = [path for folder in beside for path in folder.rglob("*")]
    return sorted(path for path in beside + within if path.is_file())


def found_in(paths: Iterable[Path], traces: Iterable[bytes]) -> set[bytes]:
    """Return the traces that occur anywhere in these files, in either case."""
    # Binary search in the sorted traces. np.isin sorts the file's windows and takes ten times as
    # long.
    targets = np.array(sorted(int.from_bytes(trace, "little") for trace in traces), dtype=np.uint64)
    # Of most windows no trace has the first two bytes.
    begin_alike = np.zeros(0x10000, dtype=bool)
    begin_alike[targets & 0xFFFF] = True
    hits: set[int] = set()
    for path in paths:
        stored = path.read_bytes()
        for data in {stored, stored.lower()}:
            for shift in range(WIDTH):
                end = shift + (len(data) - shift) // WIDTH * WIDTH
                windows = np.frombuffer(data[shift:end], dtype="<u8")
                windows = windows[begin_alike[windows & 0xFFFF]]
                places = np.searchsorted(targets, windows).clip(max=len(targets) - 1)
                hits.update(windows[targets[places] == windows].tolist())
    return {hit.to_bytes(WIDTH, "little") for hit in hits}
