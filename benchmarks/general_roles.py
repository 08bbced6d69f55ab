"""How well the shipped general roles govern trees of software projects without any metadata.

Run: python benchmarks/general_roles.py warehouse=FOLDER thanos=FOLDER [--keep FOLDER]

``general_roles/NAME.toml`` has for each tree: which documents are a role's own domain, twelve
generic tasks that any role could ask, and twenty specific questions with the document that answers
them. FOLDER is a checkout without other files, made from a clone of ``repository`` by

    git archive COMMIT -- FILES… | tar x -C FOLDER

with ``commit`` and ``files`` of that file. The roles were developed with the trees whose ``use`` is
``development``; answers of the others were only counted.

Own domain: the share of roles and generic tasks whose first passage is of the role's own domain.
Overlap: the mean share of common passages among the first five (Jaccard) of two roles' answers.
Harm: the answering document among the first three documents, and nDCG@10 of the documents, of the
specific questions with each role against no role.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.evaluation.evaluation import ndcg
from rolebundle.policy.overlays import list_overlays
from rolebundle.resources import data_folder
from rolebundle.text.paths import matches

LABELS = Path(__file__).with_suffix("")
FIRST = 5
"""How many passages of two roles are compared."""
LIMIT = 10


class Tree(NamedTuple):
    """A tree's labels. ``domains`` are globs by role; ``questions`` are globs by question."""

    name: str
    use: str
    domains: Mapping[str, Sequence[str]]
    tasks: Sequence[str]
    questions: Mapping[str, str]

    def is_own(self, role: str, path: str) -> bool:
        """Whether a document is of the role's own domain."""
        return any(matches(glob, path) for glob in self.domains[role])


class Passages(NamedTuple):
    """The selected passages of an answer: their ids, and the paths of their documents."""

    ids: list[str]
    paths: list[str]


class Asker(NamedTuple):
    """How a corpus is asked."""

    engine: Engine
    lexical_only: bool

    def ask(self, task: str, role: str | None) -> Passages:
        """The answer of a role, or of none."""
        bundle = self.engine.retrieve(
            RetrievalRequest(task=task, role=role, limit=LIMIT, lexical_only=self.lexical_only)
        )
        selected = bundle.selected
        return Passages([item.chunk_id for item in selected], [item.uri or "" for item in selected])


def main() -> int:
    """Print the figures of each tree, with both lanes and with the lexical lane alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--keep", type=Path, help="folder for the corpus files")
    parser.add_argument("-v", "--verbose", action="store_true", help="name what is missed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for entry in arguments.trees:
            name, _, folder = entry.partition("=")
            corpus = (arguments.keep or Path(temporary)) / f"{name}.db"
            if not corpus.exists():
                command = [sys.executable, "-m", "rolebundle", "ingest", folder, "--db", corpus]
                subprocess.run(command, check=True, capture_output=True)
            with Engine(corpus, [data_folder("overlays")]) as engine:
                for lexical_only in (False, True):
                    report(tree(name), Asker(engine, lexical_only), verbose=arguments.verbose)
    return 0


def tree(name: str) -> Tree:
    """The labels of a tree."""
    values = tomllib.loads((LABELS / f"{name}.toml").read_text("utf-8"))
    keys = ("use", "domains", "tasks", "questions")
    return Tree(name, *(values[key] for key in keys))


def report(labels: Tree, asker: Asker, *, verbose: bool) -> None:
    """Measure and print one tree."""
    roles = [entry.role_id for entry in list_overlays([data_folder("overlays")])]
    lanes = "words only" if asker.lexical_only else "both lanes"
    print(f"{labels.name} ({labels.use}), {lanes}")
    own_domain(labels, asker, roles, verbose=verbose)
    harm(labels, asker, roles, verbose=verbose)


def own_domain(labels: Tree, asker: Asker, roles: Sequence[str], *, verbose: bool) -> None:
    """Print the share of own domain first for each role, and how much two roles have in common."""
    answers = {role: [asker.ask(task, role) for task in labels.tasks] for role in roles}
    without = [asker.ask(task, None) for task in labels.tasks]
    shares, shares_without = [], []
    for role in roles:
        own = [any(labels.is_own(role, p) for p in answer.paths[:1]) for answer in answers[role]]
        plain = [any(labels.is_own(role, p) for p in answer.paths[:1]) for answer in without]
        shares.append(mean(own))
        shares_without.append(mean(plain))
        print(f"  {role:20} own domain first {sum(own)} of {len(own)}; no role: {sum(plain)}")
        if verbose:
            for task, answer, is_own in zip(labels.tasks, answers[role], own, strict=True):
                print(f"    {'+' if is_own else '-'} {task} → {answer.paths[:1]}")
    overlaps = [
        jaccard(first.ids[:FIRST], second.ids[:FIRST])
        for first_role, second_role in combinations(roles, 2)
        for first, second in zip(answers[first_role], answers[second_role], strict=True)
    ]
    print(f"  own domain first: {mean(shares):.0%}; no role: {mean(shares_without):.0%}")
    print(f"  overlap of two roles' first {FIRST} passages: {mean(overlaps):.2f}")


def harm(labels: Tree, asker: Asker, roles: Sequence[str], *, verbose: bool) -> None:
    """Print how the roles change the answers to specific questions."""
    without = {question: asker.ask(question, None) for question in labels.questions}
    plain = [found(without[q].paths, glob) for q, glob in labels.questions.items()]
    with_role = []
    for role in roles:
        for (question, glob), before in zip(labels.questions.items(), plain, strict=True):
            after = found(asker.ask(question, role).paths, glob)
            with_role.append(after)
            if verbose and after != before:
                print(f"    {role}: {question} {before} → {after}")
    for number, measure in enumerate(("in the first 3 documents", "nDCG@10")):
        base = mean(result[number] for result in plain)
        value = mean(result[number] for result in with_role)
        print(f"  {measure}: {value:.3f}, no role: {base:.3f} ({value / base - 1:+.1%})")


def found(paths: Sequence[str], glob: str) -> tuple[bool, float]:
    """Whether the answer is among the first three documents, and nDCG@10 of the documents.

    If several documents match, the first of them counts and the others are no mistakes.
    """
    relevant = [path for path in dict.fromkeys(paths) if matches(glob, path)]
    documents = [path for path in dict.fromkeys(paths) if path not in relevant[1:]]
    grades = {relevant[0] if relevant else glob: 1}
    return bool(relevant) and relevant[0] in documents[:3], ndcg(documents, grades, 10)


def jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    """The share of common ids among all ids of two lists."""
    return len({*first} & {*second}) / max(1, len({*first} | {*second}))


if __name__ == "__main__":
    sys.exit(main())
