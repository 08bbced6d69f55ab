"""What a model reads: the text that the tool `retrieve` returns, on questions with known answers.

Run: python benchmarks/packet.py SET FOLDER [--max-chars N]

SET has `questions.jsonl` and `corpus/NAME/`. A question has `corpus`, `question` and `places`
(`path` and `lines`; none if the corpus does not answer it). FOLDER has, or gets, `NAME.db`.

evidence or leads   share of the text that stands in the documents, or is a lead
touched within N    answerable questions of which a right line, or a sentence of one, is in the
                    first N characters, in a passage or in a lead
reach               ... or a right place, as a passage or as a lead, anywhere in the text
windows             of passages of 1,200 to 1,600 characters around a question's first right place,
                    which begins, ends, or is in the middle, those of which no right line is in the
                    two fifths of a packet that the first passage may have; the place has at most
                    half of a passage
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rolebundle.admin import Admin
from rolebundle.embedding.static import StaticProvider
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.retrieval.packet import MAX_CHARS
from rolebundle.retrieval.passage_text import best_span
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.semantic import cosines_with_task

FIRST = (1_500, 3_000)
LONG = 1_200, 1_600
_WHOLE = re.compile(r" · part of (\d+)-(\d+)(?: · |$)")
_PLACE = re.compile(r'\[(\d+)\] (?:"((?:[^"\\]|\\.)*?):(\d+)-(\d+)"|(\S+?):(\d+)-(\d+)).*')


class Shown(NamedTuple):
    """A place of the text: where it begins, its lines, and what is shown of them (offset, text).

    Of a passage that is shown in part, its lines are those of the whole.
    """

    start: int
    path: str
    lines: tuple[int, int]
    text: list[tuple[int, str]]
    size: int
    lead: tuple[int, str] = (0, "")


def shown_places(text: str) -> Iterator[Shown]:
    """The passages and the leads of a text, in their order."""
    offset, place, fence, lead = 0, None, "", (0, "")
    for line in text.split("\n"):
        found = None if fence else _PLACE.match(line)
        if found:
            if place:
                yield place if place.text else place._replace(lead=lead)
            path, first, last = (found[2], found[3], found[4]) if found[2] else found.group(5, 6, 7)
            first, last = whole.groups() if (whole := _WHOLE.search(line)) else (first, last)
            place = Shown(offset, path, (int(first), int(last)), [], len(line))
            sentence = line.rpartition('"')[0].rpartition(" › ")[2].rpartition('"')[2]
            lead = (offset, sentence.rstrip("…"))
        elif re.fullmatch("`{3,}", line) and (not fence or line == fence):
            fence = "" if fence else line
        elif fence and place:
            place.text.append((offset, line))
        offset += len(line) + 1
    if place:
        yield place if place.text else place._replace(lead=lead)


def squeezed(text: str) -> str:
    """The letters and digits."""
    return re.sub(r"[\W_]+", "", text)


class Corpus:
    """The files of a corpus, and the operations over its database."""

    def __init__(self, files: Path, db: Path) -> None:
        self.files = files
        if not db.exists():
            with Admin(db) as admin:
                admin.ingest([files], IngestOptions())
        self.engine = Engine(db)
        self.operations = Operations(self.engine)
        self.all_text = squeezed(
            "".join(p.read_text("utf-8", "replace") for p in files.rglob("*") if p.is_file())
        )
        self.lines = cache(self._lines)

    def _lines(self, path: str) -> list[str]:
        file = self.files / path
        return file.read_text("utf-8", "replace").splitlines() if file.is_file() else []

    def right(self, question: Mapping[str, Any], shown: Shown) -> str:
        """The text of the question's places that a shown place overlaps."""
        first, last = shown.lines
        return "\n".join(
            squeezed(
                "\n".join(self.lines(place["path"])[place["lines"][0] - 1 : place["lines"][1]])
            )
            for place in question["places"]
            if place["path"] == shown.path
            and place["lines"][0] <= last
            and first <= place["lines"][1]
        )

    def touched(self, question: Mapping[str, Any], text: str) -> tuple[float, bool]:
        """The characters up to the first right line, and whether a right place is named."""
        at, is_reached = float("inf"), False
        for shown in shown_places(text):
            right = self.right(question, shown)
            is_reached = is_reached or bool(right)
            for offset, line in (*shown.text, shown.lead):
                mine = squeezed(line)
                if right and len(mine) >= 8 and mine in right:
                    at = min(at, offset + len(line))
        return at, is_reached


def around(lines: Sequence[str], place: Sequence[int], share: float) -> str:
    """The text of a place with what stands around it, ``share`` of which is above; empty if short.

    It has at most ``LONG[1]`` characters; the place has at most half of them.
    """
    first, last = place[0] - 1, place[1]
    room = LONG[1] - len("\n".join(lines[first:last]))
    if room < LONG[1] / 2:
        return ""
    above = room * share
    while first and len(lines[first - 1]) < above:
        first, above = first - 1, above - len(lines[first - 1]) - 1
    below = LONG[1] - len("\n".join(lines[first:last]))
    while last < len(lines) and len(lines[last]) < below:
        last, below = last + 1, below - len(lines[last]) - 1
    text = "\n".join(lines[first:last])
    return text if len(text) > LONG[0] else ""


def windows(corpus: Corpus, question: Mapping[str, Any]) -> Iterator[bool]:
    """For long passages with the question's first place: whether the cut shows a line of it."""
    query = build_query(question["question"], None)
    words = {word for term in query.task_terms for word in term.text.casefold().split()}
    closeness = cosines_with_task(query, StaticProvider())
    place = question["places"][0]
    right = corpus.right(question, Shown(0, place["path"], tuple(place["lines"]), [], 0))
    for share in (0.0, 0.5, 1.0):
        if text := around(corpus.lines(place["path"]), place["lines"], share):
            start, end = best_span(text, words, 2 * MAX_CHARS // 5, closeness)
            shown = map(squeezed, text[start:end].splitlines())
            yield any(len(line) >= 8 and line in right for line in shown)


def main() -> None:
    """Ask the questions and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--max-chars", type=int)
    arguments = parser.parse_args()
    lines = (arguments.set / "questions.jsonl").read_text("utf-8").splitlines()
    questions: Sequence[Mapping[str, Any]] = [json.loads(line) for line in lines]
    arguments.folder.mkdir(exist_ok=True)
    corpora = {
        name: Corpus(arguments.set / "corpus" / name, arguments.folder / f"{name}.db")
        for name in sorted({question["corpus"] for question in questions})
    }
    bound = {"max_chars": arguments.max_chars} if arguments.max_chars else {}
    sizes, used, found = [], 0, []
    cuts: list[bool] = []
    for question in questions:
        corpus = corpora[question["corpus"]]
        text = corpus.operations.text("retrieve", {"task": question["question"], **bound})
        sizes.append(len(text))
        for shown in shown_places(text):
            used += 0 if shown.text else shown.size
            used += sum(
                len(line)
                for _, line in shown.text
                if not (mine := squeezed(line)) or mine in corpus.all_text
            )
        if question["places"]:
            found.append(corpus.touched(question, text))
            cuts += windows(corpus, question)
    print("| what | figure |\n| --- | --- |")
    print(f"| characters of an answer, median (most) | {median(sizes):,.0f} ({max(sizes):,}) |")
    print(f"| evidence or leads | {used / sum(sizes):.1%} |")
    for most in FIRST:
        share = sum(at <= most for at, _ in found) / len(found)
        print(f"| touched within {most:,} | {share:.1%} of {len(found)} |")
    print(f"| reach | {sum(reached for _, reached in found) / len(found):.1%} |")
    print(f"| windows without a right line | {cuts.count(False)} of {len(cuts)} |")


if __name__ == "__main__":
    main()
