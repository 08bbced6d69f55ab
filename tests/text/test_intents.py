"""What a vague task asks for besides its topic, and how much prose a text has."""

from __future__ import annotations

import pytest

from rolebundle.text.intents import task_intent, words_of_intent
from rolebundle.text.substance import substance
from support.amounts import lengths, linear_time

PROSE = "Every token is rotated once a day, and the old one is still kept for an hour after that moment."


@pytest.mark.parametrize(
    ("task", "intents"),
    [
        ("What should I look at first?", ("orientation",)),
        ("Where do I start?", ("orientation",)),
        ("I'm new here. What is this?", ("orientation",)),
        ("What are the main concepts?", ("orientation",)),
        ("What changed lately that users will notice?", ("recency",)),
        ("What is new?", ("recency",)),
        ("What has happened since the last release?", ("recency",)),
        ("What usually goes wrong?", ("trouble",)),
        ("What must users be warned about?", ("trouble",)),
        ("What has been decided?", ("decision",)),
        ("What are the open questions?", ("open",)),
        ("Which conventions apply here?", ("rule",)),
        ("Who can help me?", ("people",)),
        ("Whom do I ask?", ("people",)),
        ("What broke recently? I want an overview of problems.",
         ("recency", "orientation", "trouble")),
    ],
)  # fmt: skip
def test_what_a_task_asks_for(task: str, intents: tuple[str, ...]) -> None:
    assert task_intent(task).intents == intents


@pytest.mark.parametrize(
    "task",
    [
        "Why does the server not start?",
        "Who wrote the first release of the parser?",
        "How do I add a new field to a schema?",
        "What has to be changed in the configuration?",
        "Is the ward ready?",
        "",
    ],
)
def test_words_of_an_intent_may_belong_to_a_topic(task: str) -> None:
    assert task_intent(task) == ((), 0.0)


def test_the_share_is_that_of_the_words_without_the_topic() -> None:
    assert not task_intent("What changed lately that users will notice?").has_topic
    in_parser = task_intent("What changed lately in the parser?")
    assert in_parser.share == 0.5
    assert in_parser.has_topic


def test_words_of_an_intent_are_counted_once_each() -> None:
    trouble = "Beware: it fails. It failed, and it will fail. A known issue."
    assert words_of_intent("trouble", trouble) == 3
    assert words_of_intent("decision", "We agreed to adopt it, after we had agreed on a vote.") == 3
    assert words_of_intent("trouble", "The daily report") == 0


def test_prose_has_substance() -> None:
    assert substance(PROSE) == 1.0
    assert substance(f"# Rotation\n\n{PROSE}\n\n```sh\nrotate --now\n```") == 1.0
    assert substance(f"```{{note}}\n{PROSE}\n```") == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "# Setuptools Integration\n\nMoved to {doc}`entry-points`.",
        "Title\n=====",
        "```{eval-rst}\n.. autofunction:: command\n```\n\n```{eval-rst}\n.. autodata:: UUID\n```",
        ".. toctree::\n   :maxdepth: 2\n\n   quickstart\n   install",
        "* `See all commits of the release <https://example.org/c>`_",
        "- [Guide to the first steps](guide.md)\n- <https://example.org/a/b/c/d>",
        f"```python\n# {PROSE}\nprint(1)\n```",
        "for (i = 0; i < N; i++) { sum += v[i]; }\nreturn sum[0] == v[0] | x;",
        "LaTeX error: the font is missing\n" * 20,
        "/usr/bin/ld: ../unix/system.o:(.bss+0x0): multiple definition of `R_OutputCon';",
        f"Permission is hereby granted, free of charge, to any person. {PROSE}",
        "",
    ],
)
def test_what_stands_for_nothing_has_little(text: str) -> None:
    assert substance(text) < 0.3


def test_quotes_and_signatures_of_mail_do_not_count() -> None:
    quoted = f"> {PROSE}\n>> {PROSE}"
    assert substance(quoted, is_mail=True) == 0.0
    assert substance(quoted) > 0.9
    signature = f"Thanks!\n--\n{PROSE}"
    assert substance(signature, is_mail=True) == 0.0
    copied = f"Thanks!\nOn Monday the third, Ann wrote:\n{PROSE}"
    assert substance(copied, is_mail=True) == 0.0
    answered = f"On Monday the third, Ann wrote:\n> Why?\n{PROSE}"
    assert substance(answered, is_mail=True) == 1.0


@pytest.mark.sample(4)
@lengths
@pytest.mark.parametrize(
    "piece",
    [":", "<a", "](", "`", "$", "[[", "{a", "on ", "from: @", "#", "- ", "what do a ", "new"],
)
def test_the_time_is_linear(piece: str, length: int) -> None:
    text = piece * (length // len(piece))
    with linear_time(length):
        substance(text, is_mail=True)
        task_intent(f"first {text}")
