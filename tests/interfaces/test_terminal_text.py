"""The text for a person: it fits the terminal, and what is to be copied is whole."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.interfaces import render
from rolebundle.interfaces.layout import Style, columns
from support.commands import AUDIT, SAMPLE, invoke
from support.corpora import ask, built, chunk, document, overlay, scratch_folder

LONG = "folder-with-a-long-name/" * 3 + "and-a-file-用户.md"
COLORS = Style(color=True)


@pytest.fixture(scope="module")
def bundle() -> Iterator[RetrievalBundle]:
    """Three passages are selected, two rank lower, and two are of a forbidden source."""
    documents = [
        document(f"{LONG}{n}", [f"# Title {n}\n\nSome words. A token of 用户认证 {'abcde'[n]}. " + "And more. " * 60],
                 title=f"Title {n} " + "of a document " * 10, tags=("token",))
        for n in range(5)
    ] + [document(f"secret{n}", ["token"], source_id="rivals") for n in range(2)]  # fmt: skip
    role = overlay(
        source_policy={"forbidden_sources": [{"pattern": "rivals", "reason": "not ours"}]}
    )
    with scratch_folder() as folder, built(folder, documents) as corpus:
        yield ask(corpus, role, task="token", lexical_only=True, limit=3)


def locators(bundle: RetrievalBundle) -> list[str]:
    return [chunk.citation.locator or "" for chunk in bundle.selected]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_and_locators_are_whole(bundle: RetrievalBundle, width: int) -> None:
    lines = render.text(bundle, width).split("\n")
    copied = [*locators(bundle), *(rejection.chunk_id for rejection in bundle.rejected)]
    for locator in locators(bundle):
        assert sum(line.endswith(locator) for line in lines) == 1
    for line in lines:
        assert columns(line) <= width or line.strip() in copied, line


def test_what_ranked_lower_is_apart_from_what_was_rejected(bundle: RetrievalBundle) -> None:
    assert bundle.rejected_summary == {"forbidden_source": 2, "budget_cut": 2}
    output = render.text(bundle, 100, explain=True)
    assert "\nranked lower: 2 budget_cut\n" in output
    assert "\nrejected: 2\n  forbidden_source      2\n     rivals: not ours\n" in output
    output = render.text(bundle, 100)
    assert "\nranked lower: 2 × after the last passage shown\n" in output
    assert "\nrejected: 2\n  2 × from a source that this role may not use\n" in output
    # Words that only the program's authors know are for those who ask to explain.
    assert not re.search(r"closeness|posture|\blanes?\b|[a-z]_[a-z]|[A-Z]_[A-Z]", output)
    assert output.count("rivals: not ours") == 1
    cut = [found.chunk_id for found in bundle.rejected if found.reason == "budget_cut"]
    assert [name in output for name in cut] == [False, False]


@given(
    st.lists(st.text(st.sampled_from("a \x1b[2J\u202e\x9b\r\n\t用/|-"), max_size=30), min_size=4, max_size=4),
    st.sampled_from([40, 80]),
)  # fmt: skip
def test_no_text_controls_the_terminal(texts: list[str], width: int) -> None:
    title, heading, content, path = texts
    hostile = document(f"d{path}x", [f"token {content}"], title=f"t{title}")
    part = chunk("c#0", f"token {content}", headings=(f"h{heading}",))
    with scratch_folder() as folder, built(folder, [replace(hostile, chunks=(part,))]) as corpus:
        answer = ask(corpus, overlay(), task=f"token {content}", lexical_only=True)
    output = click.unstyle(render.text(answer, width, COLORS))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", output)


TASK = "Review the token refresh flow"


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "arguments",
    [
        ("why", AUDIT, TASK, "--lexical-only", "--limit", "1"),
        ("get", AUDIT),
        ("get", "security/*.md"),
        ("ls",),
        ("grep", "token", "--limit", "1000"),
        ("status",),
        ("retrieve", TASK, "--lexical-only"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_text_keeps_locators_whole_and_colours_change_nothing_else(
    sample_without_vectors: Path,
    arguments: tuple[str, ...],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    command = (*arguments, "--db", sample_without_vectors)
    plain = invoke(*command)
    monkeypatch.setattr("rolebundle.interfaces.cli.options.has_color", lambda stream: True)
    colored = invoke(*command)
    assert (plain.code, plain.err) == (0, "")
    times = re.compile(r"\d+ ms")
    assert times.sub("", click.unstyle(colored.out)) == times.sub("", plain.out)
    assert "\x1b[" in colored.out or arguments[0] in ("get", "ls", "status")
    for locator in {*re.findall(r"[^\s│]+\.\w+:\d+-\d+\b", plain.out)}:
        assert locator.startswith(FOLDERS), f"{locator} is the rest of a broken one"
    for line in plain.out.split("\n"):
        is_quoted = arguments[0] in ("get", "grep", "ls")
        copied = any(name in line for name in FOLDERS)
        copied |= " " not in line.strip() or line.strip().startswith("`rolebundle ")
        assert columns(line) <= width or is_quoted or copied, line


FOLDERS = tuple(f"{file.name}/" for file in SAMPLE.iterdir() if file.is_dir()) + tuple(
    f"{name}/" for name in ("drafts", "glossary", "sample_corpus")
)
