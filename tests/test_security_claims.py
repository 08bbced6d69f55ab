"""Each claim of protection in `docs/security.md` names a test, and each named test exists.

A test is named as `tests/folder/test_file.py::test_name`. A name without a file is in the file that
was named last.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from support.names_of_tests import CHECKOUT, names_of_tests

DOCUMENT = CHECKOUT / "docs" / "security.md"
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`(?:…?(tests/[\w/]+\.py)?…?(?:::)?((?:[Tt]est\w+(?:::)?)*))`")


class Claim(NamedTuple):
    """A paragraph or a row of a table, with the tests that it names, as (file, name)."""

    text: str
    in_table_of_tests: bool
    tests: tuple[tuple[str, str], ...]


def claims() -> Iterator[Claim]:
    """The claims of the document, in order."""
    file, in_table_of_tests = "", False
    for block in re.split(r"\n(?:\n+|(?=[|#-]))", _FENCE.sub("", DOCUMENT.read_text("utf-8"))):
        is_header = block.startswith("|") and not in_table_of_tests and " test" in block
        tests = []
        for named_file, name in _NAMED.findall(block):
            file = named_file or file
            if name:
                tests.append((file, name.split("::")[-1]))
        is_row = block.startswith("|") and in_table_of_tests and "| --- |" not in block
        yield Claim(block, is_row, tuple(tests))
        in_table_of_tests = block.startswith("|") and (in_table_of_tests or is_header)


CLAIMS = list(claims())


def test_each_named_test_exists() -> None:
    assert [
        (claim.text[:40], f"{file}::{name}")
        for claim in CLAIMS
        for file, name in claim.tests
        if name not in names_of_tests(file)
    ] == []


def test_each_row_of_a_table_of_tests_names_one() -> None:
    assert sum(claim.in_table_of_tests for claim in CLAIMS) > 20
    assert [claim.text for claim in CLAIMS if claim.in_table_of_tests and not claim.tests] == []


def test_no_claim_rests_on_a_file_as_a_whole() -> None:
    file_link = re.compile(r"`tests/[\w/.]*`")
    assert [
        claim.text
        for claim in CLAIMS
        if file_link.search(claim.text) and not claim.tests and "test in `tests/" not in claim.text
    ] == []
