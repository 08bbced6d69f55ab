"""Splits documents into chunks by structure, so that an edit changes few chunks.

A chunk is a run of adjacent blocks. A document is split top down: a run that fits is a chunk. Any
other run is cut at one boundary, and both parts are split in turn. The cut depends on the run only:

A run within one section, and so most whole sections, fits up to ``maximum``, because what stands
under one heading is best read together. Sections with different headings stand apart, because a
passage is found and understood by its heading. Only small ones below a common heading, which names
them, are one chunk up to ``size``, and so are definitions in source code.

1. The boundaries with the best rank are the candidates; a boundary before a heading is better than
   one between two paragraphs.
2. Candidates in the middle half of the run are preferred, so that no small part is cut off.
3. Among several the lowest hash of the text after the boundary decides.

So an edit only changes the runs that contain it, and in these the cut rarely moves: only if the
edit changes the words right after the boundary, or moves a boundary into or out of the middle half.
All chunks outside the smallest run whose cut moved keep their text and their id. If chunks were
counted from the top instead, an insertion would change every chunk below it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, islice, pairwise, takewhile
from typing import NamedTuple

from rolebundle.errors import ConfigurationError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.storage.digests import content_hash
from rolebundle.storage.documents import StoredChunk

CHUNKER_VERSION = "structure-5"


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """The size of chunks, in characters.

    Args:
        size: a run of several small sections, or of definitions, up to this size is one chunk.
        maximum: a run within one section, and a single block, is only cut if it is longer.
    """

    size: int = 1200
    maximum: int = 1800

    def __post_init__(self) -> None:
        if not 0 < self.size <= self.maximum:
            problem = f"chunk size {self.size}, maximum {self.maximum}"
            step = "choose 0 < size <= maximum"
            raise ConfigurationError("bad_chunk_settings", problem, step)


# The rank of the boundary before an atom. Runs are cut at the lowest rank first:
#   0           another page, slide or cell; always cut
#   1 to 6      a heading of this level
#   7           any other block
#   10 to 50    inside a block: a line after a blank line; 10 plus its indentation, up to 40
#   110 to 150  a line after another line, with the same addition
#   210 to 350  a line without a letter or digit at its beginning: 200 more
#   500 to 502  inside a line: a sentence, a word, a position inside a word
#   999         no cut
_ELSEWHERE = 0
_BLOCK = 7
_LINE = 10
_NO_BLANK_LINE_ABOVE = 100
_NO_WORD = 200
_SENTENCE, _WORD, _INSIDE_WORD, _NEVER = 500, 501, 502, 999

# A chunk of many sections or definitions has the names of so many as its heading.
_MAX_NAMES = 12

# Without line-exact text, adjacent blocks of these kinds are joined without a blank line.
_TIGHT = frozenset({"list", "table"})
_MAX_GAP = 6
"""The most lines between two blocks for which the blank lines of the file are kept."""
_MAX_INDENT = 40
_MAX_HEADER_CHARS = 400
_HASHED_CHARS = 24
# Words are grouped to 1/16 of the maximum size, because one atom per word would be slow.
_WORD_GROUPS = 16
# A passage of nothing else. Its first one keeps what is around it.
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{400,}[\"')>\]},;\s]*")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


_Row = tuple[int, int, int, int, int, int]
"""An atom: block, start, end, first line, last line, rank of the boundary before it."""
_Paths = Sequence[tuple[str, ...]]
"""For each block the headings above it."""
_Part = tuple[int, int, int]
"""A part of a line: start, end, rank of the boundary before it."""


class _Atoms(NamedTuple):
    """Units that are never cut: blocks up to the maximum size, and the pieces of longer blocks.

    Stored in columns, because a large document has thousands of atoms and each search reads only
    one column. ``starts`` and ``ends`` are offsets in the document's text.
    """

    blocks: list[int]
    starts: list[int]
    ends: list[int]
    first_lines: list[int]
    last_lines: list[int]
    ranks: list[int]


def chunk_document(
    document_id: str, parsed: ParsedDocument, settings: ChunkSettings
) -> tuple[StoredChunk, ...]:
    """The chunks of a document, in order. Ready-made chunks are not changed.

    A ready-made chunk without an id gets one.
    """
    if parsed.ready:
        return tuple(_ready_chunks(document_id, parsed))
    if not any(block.text.strip() for block in parsed.blocks):
        return ()
    text, starts = _text_of(parsed)
    has_data = ";base64," in text
    atoms = _atoms(parsed, starts, settings.maximum)
    paths = _heading_paths(parsed.blocks)
    counts: dict[str, int] = {}
    chunks: list[StoredChunk] = []
    for first, end in _runs(atoms, text, settings, parsed, paths):
        content = text[atoms.starts[first] : atoms.ends[end - 1]]
        if not content or content.isspace() or (has_data and _ENCODED.fullmatch(content)):
            continue
        digest = content_hash(content)
        first_block, last_block = atoms.blocks[first], atoms.blocks[end - 1]
        block = parsed.blocks[first_block]
        kinds = {b.kind for b in parsed.blocks[first_block : last_block + 1] if b.kind != "heading"}
        headings = _headings_of(paths[first_block : last_block + 1])
        # The header row of the table in which a chunk begins is its innermost heading: a heading is
        # indexed, embedded and shown, and is no part of the lines that a citation names.
        if block.header and block.header not in content:
            headings += (_short_header(block.header),)
        chunks.append(
            StoredChunk(
                chunk_id=_chunk_id(document_id, digest, counts),
                headings=headings,
                content=content,
                content_type="excerpt" if len(kinds) > 1 else next(iter(kinds), "paragraph"),
                start_line=atoms.first_lines[first],
                end_line=max(atoms.last_lines[first:end]),
                content_hash=digest,
                page=block.page,
                anchor=block.anchor or (f"p. {block.page}" if block.page else ""),
            )
        )
    return tuple(chunks)


def _chunk_id(document_id: str, digest: str, counts: dict[str, int]) -> str:
    """The id of the next chunk with this hash; ``counts`` has how many there are by hash."""
    counts[digest[:10]] = count = counts.get(digest[:10], 0) + 1
    return f"{document_id}#{digest[:10]}" + (f"-{count}" if count > 1 else "")


def _ready_chunks(document_id: str, parsed: ParsedDocument) -> Iterator[StoredChunk]:
    counts: dict[str, int] = {}
    for chunk in parsed.ready:
        if chunk.content and not chunk.content.isspace():
            digest = content_hash(chunk.content)
            chunk_id = chunk.chunk_id or _chunk_id(document_id, digest, counts)
            yield chunk._replace(chunk_id=chunk_id, content_hash=digest)


def _text_of(parsed: ParsedDocument) -> tuple[str, list[int]]:
    """The text that chunks are slices of, and the offset of each block in it.

    For line-exact documents these are the lines of the file from the first block to the last,
    including gaps. For others they are the texts of the blocks, usually separated by a blank line.
    """
    blocks = parsed.blocks
    if not parsed.line_exact:
        joints = [_joint(above, below) for above, below in pairwise(blocks)]
        parts = [block.text + joint for block, joint in zip(blocks, [*joints, ""], strict=True)]
        return "".join(parts), list(accumulate(map(len, parts[:-1]), initial=0))
    first, last = blocks[0].start_line - 1, blocks[-1].end_line
    lines = parsed.lines[first:last]
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    return "\n".join(lines), [offsets[block.start_line - 1 - first] for block in blocks]


def _joint(above: Block, below: Block) -> str:
    """What stands between two blocks: the blank lines of the file if the blocks are its lines."""
    gap = below.start_line - above.end_line
    have_lines = all(
        block.text.count("\n") == block.end_line - block.start_line for block in (above, below)
    )
    if have_lines and 2 < gap <= _MAX_GAP:
        return "\n" * gap
    return "\n" if above.kind == below.kind and above.kind in _TIGHT else "\n\n"


def _heading_paths(blocks: Sequence[Block]) -> list[tuple[str, ...]]:
    """For each block the headings above it, outermost first; a heading block includes itself."""
    paths: list[tuple[str, ...]] = []
    open_headings: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    for block in blocks:
        if block.level:
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
            if block.heading:
                open_headings.append((block.level, block.heading))
            path = tuple(heading for _, heading in open_headings)
        paths.append(path)
    return paths


def _headings_of(inside: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings above all blocks of a chunk, and the names of all sections or definitions."""
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*inside, strict=False))
    common = tuple(parts[0] for parts in same)
    depth = len(common)
    names = dict.fromkeys(path[depth] for path in inside if len(path) > depth)
    return (*common, ", ".join(islice(names, _MAX_NAMES))) if names else common


@lru_cache(maxsize=8)
def _short_header(header: str) -> str:
    """As many cells of a header row as fit. Cached, because each chunk of a table asks for it."""
    cells = [" ".join(cell.split()) for cell in re.split(r"[|\t]", header.strip("| \t"))]
    fitting = bisect_right([*accumulate(map(len, cells))], _MAX_HEADER_CHARS)
    return " | ".join(cells[: max(1, fitting)])[:_MAX_HEADER_CHARS]


def _atoms(parsed: ParsedDocument, starts: list[int], maximum: int) -> _Atoms:
    """The atoms of a document in order.

    Headings stay with the block after them, if it has the same anchor and begins within a third of
    ``maximum``. A heading that would make a row of headings longer than ``maximum`` begins a new
    row.
    """
    rows: list[_Row] = []
    headings_start = -1  # start of the headings right above; −1 if there are none
    current = (parsed.blocks[0].page, parsed.blocks[0].anchor)
    for number, (block, start) in enumerate(zip(parsed.blocks, starts, strict=True)):
        # Unpacked, because this is faster than reading each attribute.
        kind, content, first_line, last_line, level, _, page, anchor, _, _ = block
        end = start + len(content)
        is_elsewhere = (page, anchor) != current
        if is_elsewhere:
            headings_start, current = -1, (page, anchor)
        is_heading = kind == "heading"
        # What has no block, such as a comment, may be long and counts, too.
        row_length = (end if is_heading else start) - headings_start
        is_too_long = row_length > (maximum if is_heading else maximum // 3)
        is_below_heading = headings_start >= 0 and not is_too_long
        own_rank = _ELSEWHERE if is_elsewhere else level or _BLOCK
        rank = _NEVER if is_below_heading else own_rank
        if end - start <= maximum:
            rows.append((number, start, end, first_line, last_line, rank))
        else:
            pieces = _split_block(number, block, start, parsed.line_exact or block.aligned, maximum)
            if not pieces:
                continue  # nothing but white space
            # The boundary before the first piece is the one before the block.
            rows.append((*pieces[0][:-1], rank))
            rows += pieces[1:]
        if not is_heading:
            headings_start = -1
        elif rank != _NEVER:
            headings_start = start
    atoms = _Atoms(*map(list, zip(*rows, strict=True)))
    _attach_last_headings(parsed.blocks, atoms, maximum)
    return atoms


def _attach_last_headings(blocks: Sequence[Block], atoms: _Atoms, maximum: int) -> None:
    """Attach headings at the end of the document to the preceding block, if they fit."""
    if all(block.kind == "heading" for block in blocks):
        return
    for i in range(len(atoms.blocks) - 1, -1, -1):
        is_heading = blocks[atoms.blocks[i]].kind == "heading"
        is_long = atoms.ends[-1] - atoms.starts[i] > maximum
        if not is_heading or is_long or atoms.ranks[i] == _ELSEWHERE:
            break
        atoms.ranks[i] = _NEVER


def _split_block(number: int, block: Block, start: int, aligned: bool, maximum: int) -> list[_Row]:
    """Cut a block over the maximum into lines, and a line over the maximum into smaller parts.

    Lines with little indentation or below a blank line are preferred as starts. Lines without a
    letter or digit at their beginning, such as closing brackets and rules, are avoided.
    """
    rows: list[_Row] = []
    base_rank = _LINE + _NO_BLANK_LINE_ABOVE
    first_line, last_line = block.start_line, block.end_line
    for line_number, line in enumerate(block.text.split("\n"), start=block.start_line):
        body = line.lstrip()
        if body:
            if aligned:
                first_line = last_line = line_number
            indent = (length := len(line)) - len(body)
            rank = base_rank + (indent if indent < _MAX_INDENT else _MAX_INDENT)
            if not body[0].isalnum() and not any(map(str.isalnum, body[1:_HASHED_CHARS])):
                rank += _NO_WORD
            if length <= maximum:
                rows.append((number, start, start + length, first_line, last_line, rank))
            else:
                for part_start, part_end, part_rank in _split_line(line, rank, maximum):
                    extent = (start + part_start, start + part_end, first_line, last_line)
                    rows.append((number, *extent, part_rank))
            base_rank = _LINE + _NO_BLANK_LINE_ABOVE
        else:
            base_rank = _LINE
        start += len(line) + 1
    return rows


def _split_line(line: str, rank: int, maximum: int) -> Iterator[_Part]:
    """The parts of a line over the maximum: sentences, or groups of words.

    ``rank`` is that of the line, and of its first part.
    """
    for start, end in _spans_between(line, 0, len(line), _SENTENCE_END):
        if end - start <= maximum:
            yield start, end, rank
        else:
            for first, last in _word_groups(line, start, end, max(1, maximum // _WORD_GROUPS)):
                # A word over the maximum is cut at any position.
                for at in range(first, last, maximum):
                    word_rank = _WORD if at == first else _INSIDE_WORD
                    yield at, min(at + maximum, last), rank if at == start else word_rank
        rank = _SENTENCE


def _word_groups(line: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The ranges of groups of words, each up to a size or one word."""
    group_start = group_end = start
    for word_start, word_end in _spans_between(line, start, end, _SPACE):
        if group_end > group_start and word_end - group_start > size:
            yield group_start, group_end
            group_start = word_start
        group_end = word_end
    yield group_start, group_end


def _spans_between(
    line: str, start: int, end: int, separator: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """The ranges between the matches of a pattern, without empty ones."""
    for match in separator.finditer(line, start, end):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < end:
        yield start, end


def _runs(
    atoms: _Atoms, text: str, settings: ChunkSettings, parsed: ParsedDocument, paths: _Paths
) -> Iterator[tuple[int, int]]:
    """The atoms of each chunk, in document order: index of the first one, and end of the range."""
    starts, ends = atoms.starts, atoms.ends
    hashes: dict[int, bytes] = {}
    cuts = [0, *(i for i, rank in enumerate(atoms.ranks) if i and rank == _ELSEWHERE), len(starts)]
    waiting = list(pairwise(cuts))[::-1]
    while waiting:
        first, end = waiting.pop()
        cut = 0
        best = min(atoms.ranks[first + 1 : end], default=_NEVER)
        within_section = best >= _BLOCK
        most = settings.maximum if within_section else settings.size
        is_long = ends[end - 1] - starts[first] > most
        if not (is_long or within_section):
            together = _belong_together(atoms, first, end, most, parsed.blocks, paths)
            is_long = best <= parsed.clauses or not together
        if is_long and end - first > 1:
            candidates, are_central = _boundaries(atoms, first, end)
            if len(candidates) == 1:
                cut = candidates[0]
            elif are_central:
                for i in candidates:
                    if i not in hashes:
                        word = text[starts[i] : ends[i]][:_HASHED_CHARS]
                        data = word.encode("utf-8", "surrogatepass")
                        hashes[i] = blake2b(data, digest_size=8).digest()
                cut = min(candidates, key=hashes.__getitem__)
            elif candidates:
                middle = (starts[first] + ends[end - 1]) / 2
                cut = min(candidates, key=lambda i: (abs(starts[i] - middle), i))
        if cut:
            waiting += [(cut, end), (first, cut)]
        else:
            yield first, end


def _belong_together(
    atoms: _Atoms, first: int, end: int, size: int, blocks: Sequence[Block], paths: _Paths
) -> bool:
    """Whether the sections of a run are small, with a heading above all; or definitions."""
    cuts = [i for i in range(first + 1, end) if atoms.ranks[i] < _BLOCK]
    if all(blocks[atoms.blocks[i]].kind == "code" for i in cuts):
        return True
    bounds = [first, *cuts, end]
    return len({paths[atoms.blocks[i]][:1] for i in bounds[:-1]} - {()}) == 1 and all(
        atoms.ends[below - 1] - atoms.starts[above] < size / 2 for above, below in pairwise(bounds)
    )


def _boundaries(atoms: _Atoms, first: int, end: int) -> tuple[Sequence[int], bool]:
    """The boundaries at which a run may be cut, and whether they are in its middle half.

    - If the best rank of the run is that of a heading or a block: the boundaries of this rank in
      the middle half, or else those outside of it.
    - Inside one long block: the boundaries in the middle half with the best rank there, even if the
      run has better ones outside; or else all boundaries.
    - None if the run must not be cut.
    """
    starts, ranks = atoms.starts, atoms.ranks
    best = min(ranks[first + 1 : end])
    start, stop = starts[first], atoms.ends[end - 1]
    quarter = (stop - start) / 4
    # Offsets are sorted, so the middle half is a range.
    middle_first = bisect_left(starts, start + quarter, first + 1, end)
    middle_end = bisect_right(starts, start + 3 * quarter, middle_first, end)
    middle = ranks[middle_first:middle_end]
    if best >= _LINE:
        best = min(middle, default=_NEVER)
        if best == _NEVER:
            return [i for i in range(first + 1, end) if ranks[i] != _NEVER], False
    central = [i for i, rank in enumerate(middle, middle_first) if rank == best]
    if central:
        return central, True
    return [i for i in range(first + 1, end) if ranks[i] == best], False
