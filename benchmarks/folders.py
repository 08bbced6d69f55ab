"""Ask questions about folders of documentation, of rolebundle and of ``qmd search``.

Run: python benchmarks/folders.py hugo=FOLDER linux=FOLDER [--qmd COMMAND] [--keep FOLDER]

The questions in ``folder_questions.jsonl`` have the file that answers them, written from lists
of files before either tool had read them, and the words that one would type into a search box:
``qmd search`` wants every word to occur. A question counts if its file is among the first five
results, which are passages of rolebundle and documents of qmd.

``hugo`` is ``content/en`` of gohugoio/hugoDocs, ``linux`` is ``html/_sources`` of Debian's package
linux-doc-6.1. COMMAND starts qmd (npm: @tobilu/qmd), which needs Node.js 22.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

QUESTIONS = Path(__file__).with_name("folder_questions.jsonl")
RESULTS = 5
MASKS = {"hugo": "**/*.md", "linux": "**/*.rst.txt"}


class Question(NamedTuple):
    """A question about a tree, the file of the tree that answers it, and words to search for."""

    tree: str
    file: str
    question: str
    keywords: str


def main() -> int:
    """Print for each tool how many questions it answers, and which ones it does not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--qmd", default="", help="how to start qmd")
    parser.add_argument("--keep", type=Path, help="folder for the corpus files and qmd's index")
    arguments = parser.parse_args()
    trees = {name: Path(folder) for name, _, folder in (t.partition("=") for t in arguments.trees)}
    questions = [
        question
        for question in (Question(**json.loads(line)) for line in QUESTIONS.open(encoding="utf-8"))
        if question.tree in trees
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        tools = {
            "rolebundle": with_rolebundle(trees, folder),
            "rolebundle, words only": with_rolebundle(trees, folder, "--lexical-only"),
        }
        if arguments.qmd:
            tools["qmd search"] = with_qmd(trees, folder, shlex.split(arguments.qmd))
        for name, ask in tools.items():
            report(f"{name}, the question", questions, ask)
            in_keywords = [question._replace(question=question.keywords) for question in questions]
            report(f"{name}, its keywords", in_keywords, ask)
    return 0


def report(name: str, questions: Sequence[Question], ask: Callable[[Question], list[str]]) -> None:
    """Ask all questions and print the result."""
    ranks = []
    for question in questions:
        found = ask(question)[:RESULTS]
        ranks.append(found.index(question.file) + 1 if question.file in found else 0)
    count = sum(rank > 0 for rank in ranks)
    print(f"{name}: {count} of {len(ranks)} in the first {RESULTS}, {ranks.count(1)} first")
    for question, rank in zip(questions, ranks, strict=True):
        if not rank:
            print(f"  not found: {question.tree}: {question.question} ({question.file})")


def with_rolebundle(trees: dict[str, Path], folder: Path, *more: str) -> Callable[..., list[str]]:
    """Ingest the trees, and return how to ask."""

    def run(*command: str) -> str:
        return output([sys.executable, "-m", "rolebundle", *command])

    for name, tree in trees.items():
        if not (folder / f"{name}.db").exists():
            run("ingest", str(tree), "--db", str(folder / f"{name}.db"))

    def ask(question: Question) -> list[str]:
        db = str(folder / f"{question.tree}.db")
        options = ("--db", db, "--format", "json", "--limit", str(RESULTS), *more)
        bundle = json.loads(run("retrieve", question.question, *options))
        return [item["uri"] for item in bundle["selected"]]

    return ask


def with_qmd(trees: dict[str, Path], folder: Path, qmd: list[str]) -> Callable[..., list[str]]:
    """Index the trees with qmd, and return how to ask."""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "qmd-cache"),
        "XDG_CONFIG_HOME": str(folder / "qmd-config"),
    }
    if not (folder / "qmd-cache").exists():
        for name, tree in trees.items():
            add = ["collection", "add", str(tree), "--name", name, "--mask", MASKS[name]]
            output([*qmd, *add], environment)

    def ask(question: Question) -> list[str]:
        options = ["-c", question.tree, "-n", str(RESULTS), "--json"]
        text = output([*qmd, "search", question.question, *options], environment)
        results = json.loads(text) if text.lstrip().startswith("[") else []
        paths = [item["file"].split("/", 3)[3] for item in results]
        # qmd changes capitals and punctuation of paths.
        return [question.file if plain(path) == plain(question.file) else path for path in paths]

    return ask


def plain(path: str) -> str:
    """A path without what distinguishes its spellings."""
    return "".join(character for character in path.lower() if character.isalnum())


def output(command: list[str], environment: dict[str, str] | None = None) -> str:
    """The standard output of a command."""
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=3600
    )
    return result.stdout


if __name__ == "__main__":
    sys.exit(main())
