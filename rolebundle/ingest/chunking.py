"""Splits documents into chunks by structure, so that an edit changes few chunks.

A chunk is a run of blocks. A document is split top down: a run that fits is a chunk; any other run
is cut at one boundary and both halves are split in turn. The cut depends on the run alone. Among
equally strong boundaries in the middle half of a run a hash of the following text decides, not a
count from the top. Therefore:

    An edit only changes the runs that contain it. A chunk outside the smallest run whose cut moved
    keeps its text and its id.

A cut only moves if the edit changes the words right after a boundary, or moves a boundary over the
edge of the middle half. With a count from the top every chunk below an edit would change.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise

from rolebundle.contracts.terms import ContentType
from rolebundle.errors import ConfigurationError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.storage.store import StoredChunk, content_hash

CHUNKER_VERSION = "structure-1"


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """The size of chunks, in characters.

    Args:
        size: a run of blocks up to this size is one chunk.
        overlap: the maximum length of preceding text that is repeated at the start of a chunk.
        maximum: a single block is only cut if it is longer.
    """

    size: int = 1200
    overlap: int = 0
    maximum: int = 1800

    def __post_init__(self) -> None:
        if not 0 < self.size <= self.maximum or not 0 <= self.overlap < self.size:
            raise ConfigurationError(
                "bad_chunk_settings",
                f"chunk size {self.size}, overlap {self.overlap}, maximum {self.maximum}",
                "choose 0 < size <= maximum and 0 <= overlap < size",
            )


# Strength of the boundary before an atom. Lower values are cut first. 1 to 6 are heading levels.
_BLOCK = 7
_LINE = 10
_SENTENCE, _WORD, _HARD, _NEVER = 500, 501, 502, 999

# Without line-exact text, adjacent blocks of these kinds are joined without a blank line.
_TIGHT = frozenset({"list", "table"})
_MAX_INDENT = 40
_HASHED_CHARS = 24
# Words are grouped to 1/16 of the maximum size, because one atom per word would be slow.
_WORD_GROUPS = 16
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


# An atom: block, start, end, first line, last line, strength of the boundary before it.
_Row = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Atoms:
    """Units that are never cut: blocks, and pieces of blocks that exceed the maximum.

    Stored in columns, because a large document has thousands of atoms and each search reads only
    one column. ``starts`` and ``ends`` are offsets in the document's text.
    """

    blocks: list[int]
    starts: list[int]
    ends: list[int]
    first_lines: list[int]
    last_lines: list[int]
    strengths: list[int]


def chunk_document(
    document_id: str, parsed: ParsedDocument, settings: ChunkSettings
) -> tuple[StoredChunk, ...]:
    """The chunks of a document, in order. Ready-made chunks are not changed."""
    if parsed.ready:
        return tuple(_ready_chunks(parsed))
    if not parsed.blocks:
        return ()
    text, starts = _text_of(parsed)
    atoms = _atoms(parsed, text, starts, settings.maximum)
    paths = _heading_paths(parsed.blocks)
    counts: dict[str, int] = {}
    chunks: list[StoredChunk] = []
    for low, high in _runs(atoms, text, settings.size):
        start, end, first_line = atoms.starts[low], atoms.ends[high - 1], atoms.first_lines[low]
        if settings.overlap:
            max_overlap = min(settings.overlap, settings.maximum - (end - start))
            start, first_line = _with_overlap(parsed, text, atoms, low, max_overlap)
        content = text[start:end]
        if not content or content.isspace():
            continue
        digest = content_hash(content)
        first_block, last_block = atoms.blocks[low], atoms.blocks[high - 1]
        counts[digest[:10]] = count = counts.get(digest[:10], 0) + 1
        chunks.append(
            StoredChunk(
                chunk_id=f"{document_id}#{digest[:10]}" + (f"-{count}" if count > 1 else ""),
                headings=paths[first_block],
                content=content,
                content_type=_content_type(parsed.blocks, first_block, last_block),
                start_line=first_line,
                end_line=max(atoms.last_lines[low:high]),
                content_hash=digest,
                page=parsed.blocks[first_block].page,
            )
        )
    return tuple(chunks)


def _ready_chunks(parsed: ParsedDocument) -> Iterator[StoredChunk]:
    for chunk in parsed.ready:
        if not chunk.content or chunk.content.isspace():
            continue
        yield StoredChunk(
            chunk_id=chunk.chunk_id,
            headings=(),
            content=chunk.content,
            content_type=chunk.content_type,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            content_hash=content_hash(chunk.content),
            tags=chunk.tags,
            applicable_roles=chunk.applicable_roles,
            excluded_roles=chunk.excluded_roles,
        )


def _text_of(parsed: ParsedDocument) -> tuple[str, list[int]]:
    """The text that chunks are slices of, and the offset of each block in it.

    For line-exact documents these are the lines of the file from the first block to the last,
    including gaps. For others they are the texts of the blocks, usually separated by a blank line.
    """
    blocks = parsed.blocks
    if not parsed.line_exact:
        kinds = [block.kind for block in blocks]
        tight = (above == below and above in _TIGHT for above, below in pairwise(kinds))
        joints = ["\n" if is_tight else "\n\n" for is_tight in tight]
        parts = [block.text + joint for block, joint in zip(blocks, [*joints, ""], strict=True)]
        return "".join(parts), list(accumulate(map(len, parts[:-1]), initial=0))
    first, last = blocks[0].start_line - 1, blocks[-1].end_line
    lines = parsed.lines[first:last] if parsed.lines else _lines_of(blocks)
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    return "\n".join(lines), [offsets[block.start_line - 1 - first] for block in blocks]


def _lines_of(blocks: Sequence[Block]) -> list[str]:
    """The lines of blocks, with blank lines between them, if the lines of the file are missing."""
    lines: list[str] = []
    first = blocks[0].start_line
    for block in blocks:
        lines.extend([""] * (block.start_line - first - len(lines)))
        lines.extend(block.text.split("\n"))
    return lines


def _heading_paths(blocks: Sequence[Block]) -> list[tuple[str, ...]]:
    """For each block the headings above it, outermost first; a heading block includes itself."""
    paths: list[tuple[str, ...]] = []
    above: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    for block in blocks:
        if block.level:
            while above and above[-1][0] >= block.level:
                above.pop()
            if block.heading:
                above.append((block.level, block.heading))
            path = tuple(heading for _, heading in above)
        paths.append(path)
    return paths


def _content_type(blocks: Sequence[Block], first: int, last: int) -> ContentType:
    kinds = {block.kind for block in blocks[first : last + 1]} - {"heading"}
    if len(kinds) > 1:
        return "excerpt"
    kind = kinds.pop() if kinds else "paragraph"
    return "paragraph" if kind == "heading" else kind


def _atoms(parsed: ParsedDocument, text: str, starts: list[int], maximum: int) -> _Atoms:
    rows: list[_Row] = []
    headings_start = -1  # start of the headings right above; −1 if there are none
    for number, (block, start) in enumerate(zip(parsed.blocks, starts, strict=True)):
        _, content, first_line, last_line, level, _, _, _ = block
        end = start + len(content)
        strength = level or _BLOCK
        if headings_start >= 0 and not (level and end - headings_start > maximum):
            strength = _NEVER  # a heading stays with the following block
        if end - start <= maximum:
            rows.append((number, start, end, first_line, last_line, strength))
        else:
            aligned = parsed.line_exact or block.aligned
            first, *rest = _pieces(number, block, start, aligned, maximum)
            rows.append((*first[:-1], strength))
            rows += rest
        if not level:
            headings_start = -1
        elif strength != _NEVER:
            headings_start = start
    atoms = _Atoms(*map(list, zip(*rows, strict=True)))
    _attach_last_headings(parsed.blocks, atoms, maximum)
    return atoms


def _attach_last_headings(blocks: Sequence[Block], atoms: _Atoms, maximum: int) -> None:
    """Attach headings at the end of the document to the preceding block, if they fit."""
    if all(block.level for block in blocks):
        return
    for i in range(len(atoms.blocks) - 1, -1, -1):
        if not blocks[atoms.blocks[i]].level or atoms.ends[-1] - atoms.starts[i] > maximum:
            break
        atoms.strengths[i] = _NEVER


def _pieces(number: int, block: Block, start: int, aligned: bool, maximum: int) -> list[_Row]:
    """Cut a block over the maximum into lines, and a line over the maximum into smaller parts.

    Lines with little indentation or below a blank line are preferred as starts. Lines that begin
    with a closing bracket are avoided.
    """
    rows: list[_Row] = []
    above = _LINE + 100
    first_line, last_line = block.start_line, block.end_line
    for line_number, line in enumerate(block.text.split("\n"), start=block.start_line):
        body = line.lstrip()
        if body:
            if aligned:
                first_line = last_line = line_number
            indent = (length := len(line)) - len(body)
            strength = above + (indent if indent < _MAX_INDENT else _MAX_INDENT)
            if not body[0].isalnum() and not any(map(str.isalnum, body[1:_HASHED_CHARS])):
                strength += 200
            if length <= maximum:
                rows.append((number, start, start + length, first_line, last_line, strength))
            else:
                for low, high, weaker in _parts(line, maximum):
                    extent = (start + low, start + high, first_line, last_line)
                    rows.append((number, *extent, weaker or strength))
            above = _LINE + 100
        else:
            above = _LINE  # A blank line.
        start += len(line) + 1
    return rows


def _parts(line: str, maximum: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of a line over the maximum, each with its strength; 0 stands for the line's own."""
    strength = 0
    for low, high in _between(line, 0, len(line), _SENTENCE_END):
        if high - low <= maximum:
            yield low, high, strength
        else:
            for at, until, hard in _words(line, low, high, maximum):
                yield at, until, strength if at == low else hard
        strength = _SENTENCE


def _words(line: str, low: int, high: int, maximum: int) -> Iterator[tuple[int, int, int]]:
    """Groups of words. A word over the maximum is cut at any position."""
    group_size = max(1, maximum // _WORD_GROUPS)
    start = end = low
    for first, last in _between(line, low, high, _SPACE):
        if end > start and last - start > group_size:
            yield from _hard(start, end, maximum)
            start = first
        end = last
    yield from _hard(start, end, maximum)


def _hard(start: int, end: int, maximum: int) -> Iterator[tuple[int, int, int]]:
    for at in range(start, end, maximum):
        yield at, min(at + maximum, end), _WORD if at == start else _HARD


def _between(line: str, low: int, high: int, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = low
    for match in pattern.finditer(line, low, high):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < high:
        yield start, high


def _runs(atoms: _Atoms, text: str, size: int) -> Iterator[tuple[int, int]]:
    """The index ranges of the atoms of each chunk, in document order."""
    starts, ends = atoms.starts, atoms.ends
    hashes: dict[int, bytes] = {}
    # Most texts are ASCII, and slices of their bytes need no encoding.
    words = text.encode() if text.isascii() else text
    waiting = [(0, len(starts))]
    while waiting:
        low, high = waiting.pop()
        cut = 0
        if ends[high - 1] - starts[low] > size and high - low > 1:
            candidates, central = _boundaries(atoms, low, high)
            if len(central) == 1:
                cut = central[0]
            elif central:
                for i in central:
                    if i not in hashes:
                        hashes[i] = _hash_of(
                            words[starts[i] : min(starts[i] + _HASHED_CHARS, ends[i])]
                        )
                cut = min(central, key=hashes.__getitem__)
            elif candidates:
                middle = (starts[low] + ends[high - 1]) / 2
                cut = min(candidates, key=lambda i: (abs(starts[i] - middle), i))
        if cut:
            waiting += [(cut, high), (low, cut)]
        else:
            yield low, high


def _hash_of(words: str | bytes) -> bytes:
    data = words.encode("utf-8", "surrogatepass") if isinstance(words, str) else words
    return blake2b(data, digest_size=8).digest()


def _boundaries(atoms: _Atoms, low: int, high: int) -> tuple[Sequence[int], Sequence[int]]:
    """The strongest boundaries inside a run, and those in its middle half.

    If there are any in the middle half, the others are not returned. Inside one long block a weaker
    boundary in the middle half is preferred, so that no small pieces are cut off.
    """
    starts, strengths = atoms.starts, atoms.strengths
    strongest = min(strengths[low + 1 : high])
    if strongest == _NEVER:
        return (), ()
    first, last = starts[low], atoms.ends[high - 1]
    quarter = (last - first) / 4
    # Offsets are sorted, so the middle half is a range.
    from_ = bisect_left(starts, first + quarter, low + 1, high)
    to = bisect_right(starts, first + 3 * quarter, from_, high)
    middle = strengths[from_:to]
    if strongest >= _LINE:
        strongest = min(middle, default=_NEVER)
        if strongest == _NEVER:
            return [i for i in range(low + 1, high) if strengths[i] != _NEVER], ()
    central = [i for i, strength in enumerate(middle, from_) if strength == strongest]
    if central:
        return (), central
    return [i for i in range(low + 1, high) if strengths[i] == strongest], ()


def _with_overlap(
    parsed: ParsedDocument, text: str, atoms: _Atoms, low: int, max_overlap: int
) -> tuple[int, int]:
    """The start (offset, line) of the chunk that begins with atom ``low``, with overlap.

    The overlap is whole lines, or whole sentences if there is no line break; never over a heading.
    """
    blocks = parsed.blocks
    starts, numbers = atoms.starts, atoms.blocks
    start, line = starts[low], atoms.first_lines[low]
    if low == 0 or blocks[numbers[low]].level:
        return start, line
    above = low
    while above and start - starts[above] < max_overlap and not blocks[numbers[above - 1]].level:
        above -= 1
    begin = _first_whole(text, max(starts[above], start - max_overlap), start)
    if begin >= start:
        return start, line
    if parsed.line_exact:
        return begin, line - text.count("\n", begin, start)
    while starts[low] > begin:
        low -= 1
    return begin, atoms.first_lines[low]


def _first_whole(text: str, floor: int, start: int) -> int:
    """The first offset from ``floor`` at which a line, or else a sentence, begins."""
    begin = floor if floor == 0 or text[floor - 1] == "\n" else text.find("\n", floor, start) + 1
    if begin == 0 and floor > 0:
        match = _SENTENCE_END.search(text, floor, start)
        begin = match.end() if match else start
    while begin < start and text[begin] == "\n":
        begin += 1
    return begin
