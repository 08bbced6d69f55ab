"""Whether a sentence says of a row of a table what another cell says. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from rolebundle.contracts.documents import Passage
from rolebundle.text.amended import is_denied
from rolebundle.text.replaced import says
from rolebundle.text.words import content_words
from rolebundle.verify.quotes import lower_words
from rolebundle.verify.sentences import CLAUSE_END, Difference, without_numbers

_ANSWERS = {
    "yes": re.compile(r"(?:yes|y|x|true|ja|oui|s[ií]|[✓✔✅☑])(?=\W|$)", re.IGNORECASE),
    "no": re.compile(r"(?:no|n|none|false|nein|non|nee|[✗✘❌☐–-])(?=\s*(?:$|[(*]))", re.IGNORECASE),
    "perhaps": re.compile(
        r"(?:may|might|can|traces?|perhaps|possibl|spuren|kann|puede|peut)", re.I
    ),
}
"""Which cells answer the question that the head of their column asks."""
_TASK = re.compile(r"^\s*[-*+•] \[[ xX]\] ([^:|\n]{1,40}): (.+)", re.MULTILINE)
_NOT_ONLY = re.compile(r"\bnot only\b", re.IGNORECASE)


def table_or_text(passage: Passage) -> str:
    """The text of a passage; the cells of separated values are divided as in other tables."""
    lines = passage.content.split("\n")
    if not passage.path.endswith((".csv", ".tsv")):
        return passage.content
    delimiter = max(",;\t", key=lines[0].count)
    return "\n".join(" | ".join(row) for row in csv.reader(lines, delimiter=delimiter))


def other_cell(
    text: str, passages: Sequence[Passage], exact: Sequence[Passage], sample: str
) -> Difference | None:
    """The cell of another row that a sentence has in place of that of its row, or ``None``.

    Its row is the cited one, or the one with most of its words.

    Args:
        text: the sentence.
        passages: which it cites.
        exact: the same ones, with the cited lines only.
        sample: what shows the language of the sentence.
    """
    words, plain = content_words(text, sample), without_numbers(text, sample)
    if says(text, "change") or is_denied(text):
        return None
    for passage, lines in zip(passages, exact, strict=False):
        head, *rows = _rows(passage) or [[]]
        found = [words & content_words(" ".join(row), sample) for row in rows]
        of_lines, shared = _rows(lines), [len(own & plain) for own in found]
        own = [row for row in rows if row in of_lines]
        if len(own) == len(rows):  # It cites all of them.
            most = max([2, *shared])
            own = [row for row, number in zip(rows, shared, strict=True) if number == most]
            own = [row for row in own if content_words(row[0], sample) <= words] or own
        if len(own) != 1:
            continue
        row = own[0]
        texts = *head, *row, passage.document.title, *passage.headings
        elsewhere = (p.content for p in exact if p is not lines)
        known = content_words("\n".join((*texts, *elsewhere)), sample)
        others = frozenset().union(*found) - known
        named = others & plain
        for other in rows:
            for cell, mine in zip(other, row, strict=False):
                is_free = words.isdisjoint(content_words(mine, sample)) and not _answer(cell)
                said = content_words(cell, sample)
                # A sentence may have the figures of several cells.
                is_named = named <= said and 2 * len(named) >= len(said)
                if is_free and said and (is_named if named else said <= others):
                    return Difference(f'"{cell}" for "{mine}"', passage, " | ".join(row))
    return None


def other_answer(text: str, passages: Sequence[Passage]) -> Difference | None:
    """The cell, such as ``yes``, that a sentence about its row and column denies, or ``None``.

    A clause has all words of the row's first cell, or follows one that has, and those of the head
    of the column.
    """
    for passage in passages:
        head, *rows = _rows(passage) or [[]]
        names, own = [content_words(row[0]) for row in rows], list[list[str]]()
        for clause in CLAUSE_END.split(_NOT_ONLY.sub("", text.replace("-free", " free"))):
            words = content_words(clause)
            named = zip(rows, names, strict=True)
            own = [row for row, name in named if name and name <= words] or own
            for name, cell in zip(head[1:], own[0][1:] if len(own) == 1 else (), strict=False):
                answer, of_head = _answer(cell), content_words(name)
                if answer and of_head and of_head <= words and _said_of(clause, of_head) != answer:
                    what = f'the row has "{cell}" for "{name}"'
                    return Difference(what, passage, " | ".join(own[0]))
    return None


def _answer(cell: str) -> str:
    plain = cell.strip("*_`~ ")
    return next((answer for answer, form in _ANSWERS.items() if form.match(plain)), "")


def _said_of(clause: str, name: frozenset[str]) -> str:
    """What a clause answers to the head of a column, whose words it has."""
    words = lower_words(clause)
    # The name of a row may have the word, too.
    last = max(
        (n for n, word in enumerate(words) if content_words(word) & name), default=len(words)
    )
    is_no = "free" in words[:last] or is_denied(" ".join(words[:last]))
    is_perhaps = any(map(_ANSWERS["perhaps"].match, words))
    if is_no or "free" in words[last + 1 : last + 2]:
        return "no"
    return "perhaps" if is_perhaps else "yes"


def _rows(passage: Passage) -> list[list[str]]:
    """The cells of the rows of a table, its head first; without one, of "- [ ] who: what"."""
    lines = (line for line in table_or_text(passage).split("\n") if "|" in line)
    cells = (line.removeprefix("|").rstrip(" |").split("|") for line in lines)
    found = [[*map(str.strip, row)] for row in cells]
    return found or [[], *map(list, _TASK.findall(passage.content))]
