"""Every fenced block of every document is checked, or listed here with the reason why it cannot run.

The blocks of a document are one session: they run in order, in one shell, in a folder that has the
sample corpus, the overlays, the documents and the examples. What a block needs, an earlier one makes.
The language of a block says how it is checked:

``sh``
    Every command is run and must exit with 0. Standard input is empty, so servers end at once.
``python``
    Run as a program.
``text``
    The standard output of the last command before it.
``json``
    A part of that output: every field that is shown must have the shown value. If the output is
    several lines of JSON, the first such block shows the first line, the second block the second.
``toml``
    A file. Its first line is a comment with its name, under which later commands find it.
``json FILE``
    A file, under this name.
``ini``
    A unit of systemd, which is only parsed.

Shown output is compared with these allowances, and no others:

- ``…`` stands for any text; alone on a line for any lines; at the end of a JSON list for more items;
- spaces are compared as one space, because columns and line breaks depend on the terminal;
- numbers with two or more decimals may differ by 0.002: the last digits of scores depend on the
  processor's arithmetic;
- a duration (``423 ms``, ``2.3 s``) matches any other one.

Ids of a corpus and generation times change with every run, so documents leave them out or write ``…``.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.commands import CHECKOUT, PROGRAM
from support.databases import PROGRAMS, running_server
from support.program_server import FILE, forked_python

NOT_RUN = {
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install --quiet '.[onnx,mcp]' && "):
        "installs packages; CI runs the second line as it stands here",
    ("docs/models.md", "rolebundle corpus embed --model ollama"):
        "needs a server with an embedding model",
    ("docs/models.md", "rolebundle corpus embed --model folder"):
        "needs a folder with a model, which is no part of the project",
    ("CONTRIBUTING.md", "python3 -m venv .venv"):
        "installs packages; CI runs the same commands",
    ("CONTRIBUTING.md", "ROLEBUNDLE_EXAMPLES=1000"):
        "takes an hour; the tests themselves run with fewer examples",
    ("docs/agents.md", "rolebundle mcp --http"): "runs until a signal ends it",
    ("docs/agents.md", '{"hooks":'): "a host's configuration; tests/test_skill.py runs its hooks",
    ("docs/gate.md", '{"hooks":'): "a host's configuration; only parsed",
    ("docs/quality.md", "rolebundle eval COLLECTION"):
        "needs a test collection or another embedding model, which are not part of the project",
}  # fmt: skip
"""(document, how the block begins, white space ignored) → why it is not run."""

OVERLAYS_VARIABLE = "ROLEBUNDLE_OVERLAYS"
"""Unset, because a reader has not set it."""
LANGUAGES = frozenset({"sh", "python", "text", "json", "toml", "ini"})
SESSION_FILES = ("sample_corpus", "overlays", "docs", "examples")
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/decisions/*.md")
    for path in CHECKOUT.glob(pattern)
)
FENCE = re.compile(r"^( *)(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1\2[ ]*$", re.DOTALL | re.MULTILINE)
DURATION = re.compile(r"\b\d[\d,]*(?:\.\d+)? ?(?:ms|s)\b")
DECIMAL = re.compile(r"-?\d+\.\d{2,}")
TOLERANCE = 0.002

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="the documents use a POSIX shell")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True)
class Step:
    """A command of a session, with the blocks that show its output."""

    block: Block
    command: str
    output_blocks: tuple[Block, ...]


def name_of(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def blocks_of(path: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            name_of(path),
            text.count("\n", 0, match.start()) + 1,
            match[3].strip(),
            "\n".join(line.removeprefix(match[1]) for line in match[4].rstrip("\n").split("\n")),
        )
        for match in FENCE.finditer(text)
    ]


def is_listed(block: Block) -> bool:
    return any(matches(block, key) for key in NOT_RUN)


def matches(block: Block, key: tuple[str, str]) -> bool:
    document, beginning = key
    return block.document == document and compact(block.text).startswith(compact(beginning))


def compact(text: str) -> str:
    return re.sub(r"\s+", "", text)


def commands_of(block: Block) -> list[str]:
    """The commands of a shell block: one a line, or more lines that end with a backslash."""
    lines = re.sub(r"\\\n\s*", "", block.text).split("\n")
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def session_of(blocks: list[Block], folder: Path) -> list[Step]:
    """The commands of a document, and the files that its blocks show, written into ``folder``."""
    steps: list[Step] = []
    for block in blocks:
        if is_listed(block):
            continue
        match block.language:
            case "sh":
                steps += [Step(block, command, ()) for command in commands_of(block)]
            case "python":
                program = folder / f"block-{block.line}.py"
                program.write_text(block.text, encoding="utf-8")
                steps.append(Step(block, f"python {program.name}", ()))
            case "toml":
                comment, name = block.text.split("\n", 1)[0].split()[:2]
                assert comment == "#", f"{block.place}: the first line must be a comment: # FILE"
                (folder / name).write_text(block.text, encoding="utf-8")
            case language if language.startswith("json "):
                path = folder / language.removeprefix("json ")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            case "ini":
                pass
            case _:
                assert steps, f"{block.place}: shows the output of no command"
                last = steps[-1]
                steps[-1] = Step(last.block, last.command, (*last.output_blocks, block))
    return steps


def run_session(steps: list[Step], folder: Path, environment: dict[str, str]) -> list[str]:
    """Run the commands in one shell, and return the standard output of each.

    Variables and an activated environment therefore last from one block to the next.
    """
    output = folder.parent / "output"
    output.mkdir()
    script = "\n".join(
        f"{{ {step.command}\n}} >{output}/{number}.out 2>{output}/{number}.err || exit 1"
        for number, step in enumerate(steps)
    )
    result = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    outputs = []
    for number, step in enumerate(steps):
        errors = (output / f"{number}.err").read_text(encoding="utf-8")
        is_last = not (output / f"{number + 1}.err").exists()
        failed = is_last and result.returncode != 0
        assert not failed, f"{step.block.place}: {step.command}\n{errors}"
        assert "Traceback" not in errors, f"{step.block.place}: {step.command}\n{errors}"
        outputs.append((output / f"{number}.out").read_text(encoding="utf-8"))
    return outputs


def assert_expected_output(step: Step, output: str) -> None:
    """Assert that a command's output is what the document shows."""
    number_of_json = 0
    for block in step.output_blocks:
        if block.language == "json":
            answers = json_values(output)
            assert number_of_json < len(answers), f"{block.place}: there is no such answer"
            difference = json_difference(json.loads(block.text), answers[number_of_json])
            assert not difference, f"{block.place}: {difference}"
            number_of_json += 1
        else:
            assert is_text(block.text, output), (
                f"{block.place}: {step.command} prints\n{output}\nand the document shows\n"
                f"{block.text}"
            )


def json_values(output: str) -> list[Any]:
    try:
        return [json.loads(output)]
    except ValueError:
        return [json.loads(line) for line in output.splitlines()]


def json_difference(expected: Any, actual: Any, place: str = "") -> str:
    """Where ``actual`` is not what is shown; empty if it is."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        pairs = [(f"{place}.{key}", expected[key], actual.get(key)) for key in expected]
    elif isinstance(expected, list) and isinstance(actual, list):
        has_more = expected[-1:] == ["…"]
        expected = expected[:-1] if has_more else expected
        if len(actual) < len(expected) or (len(actual) > len(expected) and not has_more):
            return f"{place}: {len(actual)} items, shown are {len(expected)}"
        pairs = [(f"{place}[{n}]", item, actual[n]) for n, item in enumerate(expected)]
    elif isinstance(expected, str) and isinstance(actual, str):
        return "" if is_text(expected, actual) else f"{place}: {actual!r}, shown is {expected!r}"
    elif isinstance(expected, float) and isinstance(actual, float):
        return (
            "" if abs(expected - actual) <= TOLERANCE else f"{place}: {actual}, shown is {expected}"
        )
    else:
        return "" if expected == actual else f"{place}: {actual!r}, shown is {expected!r}"
    return next(filter(None, (json_difference(s, a, p) for p, s, a in pairs)), "")


def is_text(expected: str, actual: str) -> bool:
    """Whether a text is what is shown, with the allowances that this file's docstring lists."""
    actual = DURATION.sub("<time>", " ".join(actual.split()))
    expected = DURATION.sub("<time>", " ".join(expected.split()))
    pattern = ".*".join(re.escape(DECIMAL.sub("<number>", part)) for part in expected.split("…"))
    found = re.fullmatch(pattern.replace("<number>", rf"({DECIMAL.pattern})"), actual)
    numbers = DECIMAL.findall(expected)
    return found is not None and all(
        abs(float(ours) - float(theirs)) <= TOLERANCE
        for ours, theirs in zip(numbers, found.groups(), strict=True)
    )


def environment_for(document: Path, home: Path, programs: Path) -> dict[str, str]:
    """The variables of a session. README's reader has the program only after activating it."""
    folders = [Path(part) for part in os.environ["PATH"].split(os.pathsep)]
    if document.name == "README.md":
        folders = [part for part in folders if not (part / "rolebundle").exists()]
    else:
        folders.insert(0, programs)
    return {
        **{name: value for name, value in os.environ.items() if name != OVERLAYS_VARIABLE},
        "PATH": os.pathsep.join(map(str, folders)),
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "COLUMNS": "100",
    }


def make_environment(folder: Path) -> Path:
    """Make something like ``.venv`` with the program and this Python; return its programs."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    rolebundle = (*forked_python(), PROGRAM[-1])
    python = (*forked_python(), FILE)
    for name, command in (("rolebundle", rolebundle), ("python", python)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n', encoding="utf-8")
    return programs


# The others run in `.ci/run` and with `pytest -m slow`.
@on_posix
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, marks=[] if path.name == "README.md" else [pytest.mark.slow])
        for path in DOCUMENTS
        if not all(map(is_listed, blocks_of(path)))
    ],
    ids=name_of,
)
def test_the_blocks_of_a_document_run_and_print_what_it_shows(
    document: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in SESSION_FILES:
        shutil.copytree(CHECKOUT / name, folder / name)
    programs = make_environment(folder)
    steps = session_of(blocks_of(document), folder)
    environment = environment_for(document, tmp_path, programs)
    with running_server() if document.name == "team.md" else nullcontext() as host:
        if host is not None:
            # As on a machine with PostgreSQL, whose administrator reads the document.
            path = f"{PROGRAMS}{os.pathsep}{environment['PATH']}"
            environment |= {"PGHOST": host, "PGUSER": "postgres", "PATH": path}
        outputs = run_session(steps, folder, environment)
    for step, output in zip(steps, outputs, strict=True):
        assert_expected_output(step, output)


def all_blocks() -> Iterator[Block]:
    for document in DOCUMENTS:
        yield from blocks_of(document)


def test_every_block_has_a_language_that_says_how_it_is_checked() -> None:
    assert [
        block.place for block in all_blocks() if block.language.split(" ")[0] not in LANGUAGES
    ] == []


def test_every_fence_is_part_of_a_block() -> None:
    for document in DOCUMENTS:
        rest = FENCE.sub("", document.read_text(encoding="utf-8"))
        assert not re.search(r"^\s*(```|~~~)", rest, re.MULTILINE), name_of(document)


def test_every_listed_block_exists_once() -> None:
    counts = {key: sum(matches(block, key) for block in all_blocks()) for key in NOT_RUN}
    assert {key: count for key, count in counts.items() if count != 1} == {}


def test_files_can_be_parsed() -> None:
    parsers: dict[str, Callable[[str], object]] = {
        "json": json.loads,
        "toml": tomllib.loads,
        "ini": ConfigParser(interpolation=None).read_string,
    }
    for block in all_blocks():
        if block.language in parsers:
            parsers[block.language](block.text)


def test_ci_finds_the_test_command_in_the_readme() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^python3 -m venv .*pytest.*$", readme, re.MULTILINE)) == 1


PATHS = re.compile(
    r"`((?:tests|rolebundle|docs|benchmarks|examples|overlays|migrations|sample_corpus)/[\w./-]*)`"
)
LINKS = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
COMMANDS = re.compile(r"`python (benchmarks/\w+\.py)\b[^`]*`")


def files_named_in(document: Path) -> list[Path]:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    named = [CHECKOUT / path for path in (*PATHS.findall(text), *COMMANDS.findall(text))]
    return named + [document.parent / path for path in LINKS.findall(text)]


def test_files_that_a_document_names_exist() -> None:
    assert [
        (name_of(document), str(path))
        for document in DOCUMENTS
        for path in files_named_in(document)
        if not path.exists()
    ] == []


def test_the_page_of_the_laws_names_each_law_that_is_tested() -> None:
    laws = re.findall(r"^(\d+)\. \*\*(.+?)\.\*\*", (CHECKOUT / "docs/laws.md").read_text(), re.M)
    named = {f"{number}_{re.sub('[^a-z]+', '_', title.lower())}" for number, title in laws}
    files = (CHECKOUT / "tests" / "laws").glob("test_law_*.py")
    tested = {file.stem.removeprefix("test_law_") for file in files}
    assert tested - {"9_fixed_corpora"} == named
