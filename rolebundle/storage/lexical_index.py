"""The FTS5 indexes of a corpus, one for each compartment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice, zip_longest
from typing import Any

import apsw

from rolebundle.lazy import Floats, Integers
from rolebundle.lazy import numpy as np
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.corpus import Corpus, Ranges, record_changes, true_generation
from rolebundle.storage.sqlite import IN_SET, Binding, Row
from rolebundle.storage.stored_values import damage_error
from rolebundle.text.spellings import also_written, folded, placed, with_spellings

COLUMNS = ("title", "headings", "content", "tags", "hints", "names")
COLUMN_WEIGHTS = (2.0, 1.5, 1.0, 1.0, 1.0, 0.5)
"""How much an occurrence in each column counts. The names are those of the file and its folders."""

TEXTS = (
    "SELECT c.id, c.title, c.headings, c.content, c.tags, c.hints, f.path FROM main.chunk c "
    "JOIN main.document d ON d.id = c.document JOIN main.file f ON f.id = d.file"
)
"""The rows of chunks that :func:`indexed_texts` reads."""
_BATCH = 2_000

OFFSET_RANGE = 1 << 24
"""More than the tokens of a column."""

_COLUMNS = ", ".join(COLUMNS)
_COLUMN_NUMBER = " ".join(f"WHEN '{name}' THEN {n}" for n, name in enumerate(COLUMNS))
TOKENIZER = "porter unicode61 remove_diacritics 2"
# A commit leaves a segment for each megabyte of words. FTS5 would merge every four of them, and so
# write each word of a large ingest several times. Instead they are merged late: by `merge`, or when
# there are 128.
_SETTINGS = {"automerge": 0, "crisismerge": 128}
_PAGES_PER_STEP = 2_000

# For each word its number of occurrences, and four checksums over their places (chunk, column and
# offset), to compare two indexes. fts5vocab returns the words in order, so nothing is sorted.
_PLACES = (
    "SELECT term, count(*), sum(doc), sum(offset), sum(unicode(col) * length(col)), "
    "sum((doc % 65537) * (offset % 65537)) FROM {} GROUP BY term ORDER BY term"
)

Token = tuple[int, int, str]
"""Its first character in the text, the one after its last, and what is indexed."""

Phrase = tuple[str, ...]
"""The tokens of a word or phrase, as they are indexed."""


def table_name(compartment: int) -> str:
    """The FTS5 table of a compartment."""
    return f"lexical_{int(compartment)}"


def create(corpus: Corpus, compartment: int) -> None:
    """Create the empty index of a compartment. Call it inside a write transaction."""
    _create_table(corpus, table_name(compartment))
    for setting, value in _SETTINGS.items():
        _command(corpus, compartment, setting, value)


def _create_table(corpus: Corpus, name: str) -> None:
    columns = f"{_COLUMNS}, content = '', tokenize = '{TOKENIZER}'"
    corpus.run(f"CREATE VIRTUAL TABLE {name} USING fts5 ({columns})")


def drop(corpus: Corpus, compartment: int) -> None:
    """Remove the index of a compartment."""
    corpus.run(f"DROP TABLE IF EXISTS {table_name(compartment)}")
    corpus.run(f"DROP VIEW IF EXISTS {former_view(compartment)[0]}")


def former_view(compartment: int) -> tuple[str, str]:
    """The name and the SQL of the only kind of view that a file of an earlier version may have."""
    name = f"indexed_{int(compartment)}"
    return name, (
        f"CREATE VIEW {name} AS SELECT c.id, c.title, c.headings, c.content, c.tags, c.hints "
        "FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE d.compartment = {int(compartment)}"
    )


def indexed_texts(row: Row) -> list[str]:
    """The texts of the ``COLUMNS`` of a chunk as they are compared, from a row of ``TEXTS``.

    Other spellings of its words are among the hints.
    """
    *texts, hints = map(folded, row[1:-1])
    return [*texts, f"{hints} {also_written(' '.join(texts))}", with_spellings(row[-1])]


def extent(corpus: Corpus, compartment: int) -> tuple[int, int]:
    """The chunks and tokens of an index, from FTS5's own record.

    The record (row 1 of the table's data) consists of varints: the number of rows, then the tokens
    of each column; see "averages" in SQLite's ``fts5_index.c``.

    Raises:
        CorpusCorrupt: there is no such record.
    """
    block = corpus.value(f"SELECT block FROM {table_name(compartment)}_data WHERE id = 1")
    if not isinstance(block, bytes):
        raise damage_error(f"the record of {table_name(compartment)}")
    numbers = _varints(block)
    return (numbers[0], sum(numbers[1:])) if numbers else (0, 0)


def _varints(block: bytes) -> list[int]:
    """SQLite's varints: seven bits a byte, the high bit set on all but the last."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def lengths(corpus: Corpus, compartment: int, ranges: Ranges) -> tuple[Integers, Floats]:
    """The rowids in these ranges, sorted, and the number of tokens of each."""
    name = table_name(compartment)
    [(found, sizes)] = corpus.rows(
        "SELECT group_concat(s.id), group_concat(hex(sz), '') FROM json_each(?) r CROSS JOIN "
        f"{name}_docsize s ON s.id BETWEEN r.value ->> 0 AND r.value ->> 1",
        (ranges,),
    )
    rowids = _numbers(found)
    # A varint for each column: seven bits a byte, the high bit set on all but the last.
    data = np.frombuffer(bytes.fromhex(sizes or ""), np.uint8)
    is_last = data < 0x80
    number: Integers = np.cumsum(is_last) - is_last
    if is_last.sum() != len(COLUMNS) * len(rowids):
        raise damage_error(name)
    after = np.flatnonzero(is_last)[number] - np.arange(len(data))
    counts = np.bincount(number // len(COLUMNS), (data & 0x7F) * 128.0**after)
    return rowids, counts.astype(np.float64)


def keys_of(
    corpus: Corpus, compartment: int, words: Sequence[str], *, with_offsets: bool
) -> dict[str, Integers]:
    """Word → ``rowid * columns + column`` of each occurrence, sorted.

    With offsets, each of these is multiplied by ``OFFSET_RANGE``, and the offset is added.
    """
    table = corpus.word_table_of(table_name(compartment))
    key = f"doc * {len(COLUMNS)} + CASE col {_COLUMN_NUMBER} END"
    key = f"({key}) * {OFFSET_RANGE} + offset" if with_offsets else key
    rows = corpus.rows(
        f"SELECT value, (SELECT group_concat({key}) FROM {table} WHERE term = value) "
        "FROM json_each(?)",
        (words,),
    )
    return {word: _numbers(found) for word, found in rows}


def _numbers(text: str | None) -> Integers:
    return np.fromstring(text or "", np.int64, sep=",")


def add_chunks(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Index these chunks."""
    _write(corpus, table_name(compartment), f"c.id {IN_SET}", rowids)
    record_changes(corpus, rowids)


def remove_chunks(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Remove chunks from the index. Call it while their rows still have the indexed text."""
    _write(corpus, table_name(compartment), f"c.id {IN_SET}", rowids, "delete")
    record_changes(corpus, rowids)


def _write(corpus: Corpus, table: str, chunks: str, binding: Binding, command: str = "") -> None:
    """Index the chunks that meet a condition, or do this command for each of them."""
    name = table.removeprefix("temp.")
    columns, values = f"rowid, {_COLUMNS}", ", ".join("?" * (1 + len(COLUMNS)))
    if command:
        columns, values = f"{name}, {columns}", f"'{command}', {values}"
    rows = corpus.iterate(f"{TEXTS} WHERE {chunks} ORDER BY c.id", (binding,))
    while batch := [(row[0], *indexed_texts(row)) for row in islice(rows, _BATCH)]:
        corpus.run_many(f"INSERT INTO {table} ({columns}) VALUES ({values})", batch)


def rebuild(corpus: Corpus, compartment: int) -> None:
    """Rebuild the index from the chunks."""
    name = table_name(compartment)
    corpus.run(f"INSERT INTO {name} ({name}) VALUES ('delete-all')")
    _write(corpus, name, "d.compartment = ?", compartment)
    while merge(corpus, compartment):
        pass


def merge(corpus: Corpus, compartment: int) -> bool:
    """Do one step of merging the segments that commits left. It writes about 8 MB of the file.

    Call it inside a write transaction. No answer changes. Each word is looked up in every segment,
    so fewer segments make searches faster.

    Returns:
        Whether something was merged; there may be more.
    """
    before = corpus.value("SELECT total_changes()")
    _command(corpus, compartment, "merge", _PAGES_PER_STEP)
    # The command itself counts as one change; more mean merged pages (https://sqlite.org/fts5.html).
    return bool(corpus.value("SELECT total_changes()") - before >= 2)


def _command(corpus: Corpus, compartment: int, command: str, number: int) -> None:
    name = table_name(compartment)
    corpus.run(f"INSERT INTO {name} ({name}, rank) VALUES (?, ?)", (command, number))


def check(corpus: Corpus, compartment: int) -> None:
    """Compare the index with a new one of the chunks: its words, and the averages for BM25.

    Raises:
        CorpusCorrupt: they differ.
    """
    _command(corpus, compartment, "integrity-check", 0)
    # FTS5 reads a text as if it were bytes.
    for table, column in (("data", "block"), ("idx", "term"), ("docsize", "sz")):
        name = f"{table_name(compartment)}_{table}"
        if corpus.value(f"SELECT count(*) FROM {name} WHERE typeof({column}) <> 'blob'"):
            raise damage_error(name)
    if not _has_same_words(corpus, compartment):
        raise damage_error(table_name(compartment))


def _has_same_words(corpus: Corpus, compartment: int) -> bool:
    """Whether a new index of the chunks has the same words, as often and at the same places."""
    name = table_name(compartment)
    new, new_words, words = ("temp.expected", "temp.expected_words", "temp.actual_words")
    try:
        _create_table(corpus, new)
        _write(corpus, new, "d.compartment = ?", compartment)
        for table, of in ((new_words, "temp, expected"), (words, f"main, {name}")):
            corpus.run(f"CREATE VIRTUAL TABLE {table} USING fts5vocab ({of}, instance)")
        both = (corpus.iterate(_PLACES.format(table)) for table in (new_words, words))
        # To the end, because SQLite drops no table that is still being read.
        if sum(bool(expected != actual) for expected, actual in zip_longest(*both)):
            return False
        # FTS5 would write its averages only when the transaction is committed.
        corpus.run(f"INSERT INTO {new} (expected) VALUES ('flush')")
        expected, actual = (
            _varints(corpus.value(f"SELECT block FROM {table}_data WHERE id = 1"))
            for table in (new, f"main.{name}")
        )
        # Without chunks, there may be no numbers or zeroes.
        return expected == actual or not any(expected + actual)
    finally:
        for table in (words, new_words, new):
            corpus.run(f"DROP TABLE IF EXISTS {table}")


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order: folded, without Latin diacritics, and with English stems."""
    if text.isascii():
        return _tokens(text)
    whole, starts, ends = placed(text)
    data = whole.encode("utf-8", "replace")
    result: list[Token] = []
    read = characters = 0
    for start, end, indexed in _tokens(whole):
        # The tokenizer counts bytes.
        characters += len(data[read:start].decode())
        first, read = characters, end
        characters += len(data[start:end].decode())
        result.append((starts[first], ends[characters - 1], indexed))
    return result


def _tokens(text: str) -> list[Token]:
    """The tokens of a folded text, with their places in its bytes."""
    data = text.encode("utf-8", "replace")
    return _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)


def keys_of_texts(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Word → its keys with offsets, as of :func:`keys_of`, from rows of ``TEXTS`` by rowid."""
    found: dict[str, list[int]] = {}
    for row in rows:
        for column, text in enumerate(indexed_texts(row)):
            start = (row[0] * len(COLUMNS) + column) * OFFSET_RANGE
            for offset, (_, _, word) in enumerate(_tokens(text)):
                found.setdefault(word, []).append(start + offset)
    return found


@lru_cache(maxsize=4096)
def phrase_of(text: str) -> Phrase:
    """The tokens of a word or phrase as the index has them; empty if it has none."""
    return tuple(token for _, _, token in _tokens(folded(text.replace("\x00", " "))))


@cache
def _tokenizer() -> Callable[..., list[tuple[int, int, str]]]:
    name, *arguments = TOKENIZER.split()
    # apsw's types do not tell that the options decide what is returned.
    tokenizer: Any = apsw.Connection(":memory:").fts5_tokenizer(name, arguments)
    return tokenizer  # type: ignore[no-any-return]


def verify_lexical_indexes(corpus: Corpus) -> None:
    """Check that the lexical indexes have as many chunks as there are.

    It is done once for each state of the corpus that this connection sees.

    Raises:
        CorpusCorrupt: they do not.
    """
    for compartment in searchable_compartments(corpus, with_facts=True):
        name = table_name(compartment.id)
        if corpus.verified.get(name) == true_generation(corpus):
            continue
        indexed, _ = corpus.lexical.extent(corpus, compartment.id)
        if indexed != compartment.chunks:
            raise damage_error("the lexical index", "damaged_index", corpus.path)
        corpus.verified[name] = true_generation(corpus)
