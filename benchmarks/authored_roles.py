"""Does the first passage fit a role that was written by `init` or `overlay new`?

Run: python benchmarks/authored_roles.py git=FOLDER docs=FOLDER mail=FOLDER notes=FOLDER
     [--keep FOLDER] [--output FILE]

``authored_roles.toml`` has for each folder three roles and four generic tasks of each. The folder
is copied, so that nothing is written to it. Its first role is written by ``init --role`` before the
ingest, as a new user would, and the others by ``overlay new`` after it. Each task is asked with its
role. One JSON line for each is printed: folder, role, task, and path, title and text of the first
passage. Readers who see only role, task and passage judge whether the passage fits both.

``authored_roles.jsonl`` has what one reader judged of passages of the "development" folders, by the
hash at the end of their chunk ids. At the end, the first passages are counted by it.

Run as ``python benchmarks/authored_roles.py --count JUDGED…`` it counts the judgements: files of
lines with ``folder``, ``role``, ``task`` and ``fits`` (true or false), one file for each reader. A
passage fits if most readers say so.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TASKS = Path(__file__).with_suffix(".toml")
JUDGEMENTS = Path(__file__).with_suffix(".jsonl")
GRADES = ("fits", "partly", "no")


def main() -> int:
    """Prepare the folders and print the first passages, or count judgements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--keep", type=Path, help="folder for the copies and the corpus files")
    parser.add_argument("--output", type=Path, help="write the lines to this file")
    parser.add_argument("--count", nargs="+", type=Path, metavar="JUDGED")
    arguments = parser.parse_args()
    if arguments.count:
        count(arguments.count)
        return 0
    tasks = tomllib.loads(TASKS.read_text("utf-8"))
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.keep or Path(temporary)
        for entry in arguments.folders:
            name, _, folder = entry.partition("=")
            for line in first_passages(name, Path(folder), tasks[name]["roles"], place / name):
                lines.append(json.dumps(line, ensure_ascii=False))
                print(lines[-1], flush=True)
    print_grades(map(json.loads, lines))
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def first_passages(
    name: str, folder: Path, roles: Mapping[str, Sequence[str]], place: Path
) -> Iterator[dict[str, Any]]:
    """Write the roles, ingest the folder, and ask every task."""
    shutil.rmtree(place, ignore_errors=True)
    copy, corpus = place / folder.name, place / "corpus.db"
    shutil.copytree(folder, copy, symlinks=True)
    first, *further_roles = roles
    run("init", copy, "--role", first, "--db", corpus)
    run("ingest", copy, "--db", corpus)
    for role in further_roles:
        run("overlay", "new", role, "--db", corpus)
    run("overlay", "lint", *roles, "--db", corpus)
    for role, tasks in roles.items():
        for task in tasks:
            arguments = ("--role", role, "--limit", "1", "--format", "json", "--db", corpus)
            bundle = json.loads(run("retrieve", task, *arguments))
            passages = bundle["selected"]
            passage = passages[0] if passages else None
            yield {
                "folder": name,
                "role": role,
                "task": task,
                "chunk_id": passage["chunk_id"] if passage else None,
                "path": passage["citation"]["locator"] if passage else None,
                "title": passage["title"] if passage else None,
                "text": passage["content"] if passage else None,
            }


def run(*arguments: object) -> str:
    """Run a command of rolebundle and return its output."""
    command = [sys.executable, "-m", "rolebundle", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command[3:])}: {result.stderr}")
    return result.stdout


def print_grades(lines: Iterable[Mapping[str, Any]]) -> None:
    """Print for each folder how many first passages fit, partly or not, as was judged before."""
    judged = {
        (entry["folder"], entry["role"], entry["task"]): entry
        for entry in map(json.loads, JUDGEMENTS.read_text("utf-8").splitlines())
    }
    grades: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        entry = judged.get((line["folder"], line["role"], line["task"]), {})
        name = (line["chunk_id"] or "").rpartition("#")[2]
        grade = next((grade for grade in GRADES if name in entry.get(grade, ())), "not judged")
        grades[line["folder"]][grade if name else "no passage"] += 1
    for folder, counts in grades.items():
        print(f"{folder}: {dict(counts)}", file=sys.stderr)


def count(files: Sequence[Path]) -> None:
    """Print how many passages fit in the judgement of most readers, of all and by folder."""
    votes: defaultdict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            judged = json.loads(line)
            votes[judged["folder"], judged["role"], judged["task"]].append(judged["fits"])
    fitting = Counter(key[0] for key, own in votes.items() if sum(own) * 2 > len(own))
    totals = Counter(key[0] for key in votes)
    print(f"{sum(fitting.values())} of {len(votes)} fit")
    for name, total in totals.items():
        print(f"  {name}: {fitting[name]} of {total}")
    for key, own in votes.items():
        if sum(own) * 2 <= len(own):
            print(f"  no: {' · '.join(key)} ({sum(own)} of {len(own)})")


if __name__ == "__main__":
    raise SystemExit(main())
