"""The gate: contracts, criteria, hooks and scenarios."""

import gzip
import json
import os
import re
import shlex
import shutil
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.gate import GateReport
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, ConfigurationError, StorageError, UsageError
from rolebundle.gate.baseline import start_gate
from rolebundle.gate.content import content_of
from rolebundle.gate.contract import approve_contract, load_contract, revoke_contract
from rolebundle.gate.files import NotReadable, read_regular
from rolebundle.gate.hooks import BLOCKS, DEFAULT_RETRIES, answer_stop
from rolebundle.interfaces.servers.operations import METHODS, TOOLS
from rolebundle.workspace import Workspace
from support.amounts import lengths, linear_time
from support.commands import Outcome, audit_rows, invoke
from support.corpora import as_owner, build, set_policy
from support.corpora import document as plain_document
from support.source_tree import write_files

# -- What agents do between `gate start` and `gate check`: false completions, and honest ones -------

Files = Mapping[str, str | bytes]
Act = Callable[[Path], object]

CONTRACT = "work.gate.toml"


@dataclass(frozen=True)
class Scenario:
    """One attempt.

    ``before``: the files at the start. ``contract``: its criteria. ``act``: what the agent does,
    files to write or a function of the folder. ``edited``: what the contract is changed to. ``started``: whether the gate was started.
    """

    name: str
    contract: str
    act: Files | Act
    before: Files = field(default_factory=dict)
    edited: str | None = None
    started: bool = True

    def perform(self, folder: Path) -> None:
        """Do what the agent does."""
        if callable(self.act):
            self.act(folder)
        else:
            write_files(folder, self.act)


def criteria(*checks: str) -> str:
    """A contract of criteria, each given as its keys after the id."""
    tables = [f'[[criteria]]\nid = "c{n}"\n{check}\n' for n, check in enumerate(checks, 1)]
    return "\n".join(tables)


def _check(kind: str, file: str, *more: str) -> str:
    return "\n".join([f'check = "{kind}"', f'file = "{file}"', *more])


def changed(file: str) -> str:
    return _check("changed", file)


def exists(file: str) -> str:
    return _check("exists", file)


def matches(file: str, pattern: str) -> str:
    return _check("matches", file, f"pattern = '{pattern}'")


def copy(source: str, target: str) -> Act:
    return lambda folder: shutil.copy(folder / source, folder / target)


def move(source: str, target: str) -> Act:
    def act(folder: Path) -> None:
        (folder / target).parent.mkdir(exist_ok=True)
        (folder / source).rename(folder / target)

    return act


def link_to_a_report(folder: Path) -> None:
    write_files(folder, {"elsewhere/report.md": REPORT})
    (folder / "out").symlink_to("elsewhere")


def link(target: str, name: str) -> Act:
    return lambda folder: (folder / name).symlink_to(target)


REPORT = """# Review of the token refresh

The refresh endpoint accepts a token for 24 hours after logout. We measured this on three builds.

## Findings

1. `POST /refresh` does not look at the revocation list (auth/refresh.py:41).
2. The list is replicated every five minutes, so that a stolen tablet can replay a token.
3. Clients retry with the same token after a timeout, and get a new one each time.

## Recommendation

Check the list before a token is issued, and bind tokens to the device key. The first change is
small and can be in release 3.0; the second one needs a migration of all sessions.
"""
OLD_REPORT = REPORT.replace("token refresh", "sync protocol").replace("24 hours", "7 days")
TRACEBACK = """Traceback (most recent call last):
  File "/app/report.py", line 12, in <module>
    main()
  File "/app/report.py", line 8, in main
    raise ValueError("no data")
ValueError: no data
"""
PROGRAM = '''"""Slugs of titles."""

import re


def slug(title: str) -> str:
    """A title in lower case, with hyphens."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    if not words:
        raise ValueError("error: the title has no words")
    return "-".join(words)
'''
PAGE_404 = """<!DOCTYPE html>
<html><head><title>404 Not Found</title></head>
<body><center><h1>404 Not Found</h1></center><hr><center>nginx/1.24.0</center></body></html>
"""
CHANGED_REPORT = criteria(changed("report.md"))
USUAL = criteria(changed("report.md"), _check("not_empty", "report.md"))
ONLY_EXISTS = criteria(exists("report.md"))
THOROUGH = criteria(
    changed("report.md"),
    _check("min_bytes", "report.md", "bytes = 300"),
    matches("report.md", "(?m)^## Findings"),
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "required": ["title", "findings"],
        "properties": {
            "title": {"type": "string", "minLength": 3},
            "findings": {"type": "array", "items": {"type": "string"}},
        },
    }
)
FACTS = criteria(changed("facts.json"), _check("schema", "facts.json", 'schema_file = "s.json"'))
COMMAND = 'check = "command"\ncommand = ["true"]'


def _report_file(name: str, text: str | bytes) -> Scenario:
    return Scenario(f"the file is {name}", ONLY_EXISTS, {"report.md": text})


MOVED = criteria('check = "moved_from"\nfile = "new/a.md"\nfrom = "a.md"')
RESTORED = criteria('check = "restored"\nfile = "a.md"')
_SETTINGS = '{"name": "a", "list": [1, 2]}'
NO_CHANGES = [
    ("an invisible character", "a.md", REPORT, REPORT.replace("token", "to\u200bken")),
    (
        "another Unicode form",
        "a.md",
        "Ein Bericht über Öl.\n",
        "Ein Bericht u\u0308ber O\u0308l.\n",
    ),
    ("other lines", "a.md", REPORT, REPORT.replace("\n\n", "\n\n\n").replace(" the ", "  the\n")),
    ("a comment that nobody sees", "a.md", REPORT, REPORT + "<!-- done -->\n"),
    ("a no-break space", "a.txt", REPORT, REPORT.replace("a token", "a\u00a0token")),
    ("white space in a comment", "a.py", PROGRAM + "# a  b\n", PROGRAM + "    #  a b\n"),
    ("the order of keys", "a.json", _SETTINGS, '{"list": [1,2],\n "name": "a"}'),
    ("quotation marks of cells", "a.csv", "a,b\n1,x y\n", '"a","b"\r\n"1","x y"\r\n'),
    ("white space of markup", "a.html", "<p>a</p><p>b</p>", "<p>a</p>\n\n  <p>b</p>\n"),
]
NO_RESULTS: list[tuple[str, str | bytes]] = [
    ("a.json", '{"items": []}'), ("a.json", '{"a": {"b": null, "c": ""}}'), ("a.jsonl", "{}\n{}\n"),
    ("a.csv", "name;amount\n"), ("a.csv", "name,amount\n,\n"),
    ("a.xml", "<items><item/></items>"),
    ("a.html", "<html><head><title>A</title></head><body></body></html>"),
    ("a.zip", b"PK\x05\x06" + bytes(18)), ("a.gz", gzip.compress(b"", mtime=0)),
    ("a.sql", "-- migration\n-- statements here\n"), ("a.md", "# Report\n\n**Summary:**\n\nRisks:\n"),
    ("a.png", "a picture"), ("a.pdf", PAGE_404), ("a.jpg", b"\x89PNG\r\n\x1a\n" + bytes(99)),
    ("a.docx", "a letter"), ("a.sqlite", "rows"), ("a.json", "none"),
    ("a.md", b"%PDF-1.7\n" + bytes(range(256))), ("a.csv", "<!DOCTYPE html><html></html>"),
    ("a.md", "# A\n\nTODO\n\n# B\n\nTODO: all\n"), ("a.md", "Dear [Insert name],\n\nhello.\n"),
    ("a.md", "Owner: TBD\nThe rest is known.\n"), ("a.md", "| a | b |\n|---|---|\n| x | TBD |\n"),
    ("a.txt", "To <your name here>: hello\n"), ("a.py", "x = 1  # TODO: all of it\n"),
    ("a.py", "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n"),
    ("a.txt", "I'm sorry, but I was unable to open the file.\n"),
    ("a.json", '{"error": {"code": 529, "message": "overloaded"}}'),
    ("a.md", "Error: 529: retrying\n" * 60 + "Error: giving up\n"),
]  # fmt: skip


FALSE_COMPLETIONS = [
    # Nothing was done.
    Scenario("nothing was written", CHANGED_REPORT, {}),
    Scenario("nothing was done, and all was there before", ONLY_EXISTS, {}, {"report.md": REPORT}),
    Scenario("no gate was started", CHANGED_REPORT, {"report.md": REPORT}, started=False),
    # Empty.
    _report_file("empty", ""),
    _report_file("zero bytes", b"\x00" * 4000),
    _report_file("invisible characters", "\u200b\u200b\u2060\n" * 100),
    Scenario("a file of many was left empty", criteria(changed("out/*.md")),
             {"out/a.md": REPORT, "out/b.md": ""}),
    Scenario("padded with white space to the size", THOROUGH,
             {"report.md": "## Findings\n" + " " * 1000}),
    # Stale and substituted.
    Scenario("written again as it was", USUAL, {"report.md": OLD_REPORT}, {"report.md": OLD_REPORT}),
    Scenario("only line ends were changed", CHANGED_REPORT,
             {"report.md": OLD_REPORT.replace("\n", "\r\n")}, {"report.md": OLD_REPORT}),
    Scenario("an old report was copied", THOROUGH, copy("2025.md", "report.md"),
             {"2025.md": OLD_REPORT}),
    Scenario("an old report was moved", THOROUGH,
             move("2025.md", "report.md"), {"2025.md": OLD_REPORT}),
    Scenario("one text under two names", criteria(changed("a.md"), changed("b.md")),
             {"a.md": REPORT, "b.md": REPORT}),
    Scenario("a symbolic link to an old report", THOROUGH, link("2025.md", "report.md"),
             {"2025.md": OLD_REPORT}),
    Scenario("a folder behind a symbolic link", criteria(changed("out/report.md")),
             link_to_a_report),
    # Errors.
    _report_file("a traceback", TRACEBACK),
    _report_file("a log that ends with a traceback", "Reading 40 files\nBuilding the report\n" + TRACEBACK),
    _report_file("a fenced traceback and nothing else", f"# Report\n\n```\n{TRACEBACK}```\n"),
    _report_file("an error message", "error: the model server did not answer within 60 s\n"),
    _report_file("an error page", PAGE_404),
    _report_file("an error as JSON", '{"error": {"message": "Rate limit exceeded", "type": "requests"}}'),
    _report_file("a missing program", "bash: line 1: pandoc: command not found\n"),
    # Refusals and placeholders.
    _report_file("a refusal", "I'm sorry, but I can't access the repository, so I cannot write a report.\n"),
    _report_file("a placeholder", "TODO: write the report\n"),
    _report_file("headings only", "# Report\n\n## Findings\n\n## Recommendation\n"),
    Scenario("headings with nothing decided", THOROUGH.replace("300", "40"),
             {"report.md": "# Report\n\n## Findings\n\nTBD\n\n## Recommendation\n\nTBD\n"}),
    # Criteria that were not checked, or not by the contract of the start.
    Scenario("a command was skipped", criteria(changed("report.md"), COMMAND), {"report.md": REPORT}),
    Scenario("the contract was made easier", THOROUGH, {"report.md": "A short and wrong report."},
             edited=CHANGED_REPORT),
    Scenario("a criterion was taken out", criteria(changed("report.md"), changed("tests.py")),
             {"report.md": REPORT}, edited=CHANGED_REPORT),
    Scenario("the schema was made easier", FACTS, {"facts.json": '{"x": 1}', "s.json": "{}"},
             {"s.json": SCHEMA}),
    Scenario("too short", THOROUGH, {"report.md": "## Findings\n\nNone were needed."}),
    Scenario("another file than the one with this digest",
             criteria(f'check = "sha256"\nfile = "a.bin"\nsha256 = "{"0" * 64}"'), {"a.bin": b"\x01\x02"}),
    Scenario("a JSON file that is cut off", criteria(exists("f.json")),
             {"f.json": '{"title": "Findings", "findings": ["The token is read tw'}),
    Scenario("a page in the place of a download", criteria(changed("f.csv")),
             {"f.csv": "<!DOCTYPE html><html><title>Sign in</title><p>Sign in</p></html>"}),
    # No change in substance.
    *(
        Scenario(f"only {name}", criteria(changed(file)), {file: after}, {file: before})
        for name, file, before, after in NO_CHANGES
    ),
    Scenario("a template under another title", CHANGED_REPORT,
             {"report.md": "# Report of March\n\n## Results\n\n(results)\n"},
             {"template.md": "# Title\n\n## Results\n\n(results)\n"}),
    # Of another kind, or empty in substance.
    *(
        Scenario(f"the file {file} is {content[:30]!r}", criteria(exists(file)), {file: content})
        for file, content in NO_RESULTS
    ),
    # Moved and restored.
    Scenario("a copy, and the original is still there", MOVED, {"new/a.md": REPORT},
             {"a.md": REPORT}),
    Scenario("nothing was moved, and the original is gone", MOVED,
             lambda f: (f / "a.md").unlink(), {"a.md": REPORT}),
    Scenario("something else was restored", RESTORED, {"a.md": "# Restored\n\nIt is back.\n"},
             {"trash/a.md": REPORT}),
    Scenario("nothing was restored", RESTORED, {}, {"a.md": "broken", "trash/a.md": REPORT}),
]  # fmt: skip

_LONG_LOG = "".join(f"2026-11-22 12:00:{n:02} step {n} took {n * 7} ms\n" for n in range(60))
POSTMORTEM = f"""# Postmortem: the nightly report

Error: "no data" was in the log for two nights before anybody looked. The traceback was

```
{TRACEBACK}```

The cause was a renamed column in the export. We fixed the query, added a test with an empty export,
and let the job fail loudly. I cannot rule out that other jobs read the old name; a search over the
repository found none.
"""
ERROR_GUIDE = """# Error handling

Errors: what they mean, and what to do. The server answers with one of these.

| status | meaning | what to do |
| --- | --- | --- |
| 404 Not Found | there is no such note | do not retry |
| 429 Too Many Requests | too fast | wait as `Retry-After` says |
| 503 Service Unavailable | a restart | retry with a pause |

If the body has `"error"`, show its message. TODO lists are not errors: an empty one gives `[]`.
"""
APOLOGY = """Dear Ms Brandt,

I'm sorry that the sync lost your notes on Monday. We found the cause the same day, and your notes
of Monday are back in the folder Recovered. Please update to version 3.0.2; nothing else is needed.
"""
LIMITS = """# Findings

I could not find figures for 2019, so this covers 2020 to 2025.

Revenue grew from 1.2 to 3.4 million, mostly in the second half of 2023. Costs grew slower, by 12%
a year. Two sources differ for the third quarter of 2022; both values are given, and the lower one
is used. The growth of 2023 came from two large customers, and one of them has left since.

| year | revenue | costs |
| --- | --- | --- |
| 2024 | 3.1 | 1.6 |
| 2025 | 3.4 | 1.7 |
"""


def _wrote(name: str, text: str | bytes, contract: str = USUAL) -> Scenario:
    return Scenario(name, contract, {"report.md": text})


HONEST_COMPLETIONS = [
    _wrote("a report that meets all", REPORT, THOROUGH),
    Scenario("an old report was brought up to date", THOROUGH, {"report.md": REPORT},
             {"report.md": OLD_REPORT}),
    Scenario("a section was added", USUAL, {"report.md": OLD_REPORT + "\n## Risks\n\nNone is open.\n"},
             {"report.md": OLD_REPORT}),
    _wrote("a postmortem that quotes a traceback", POSTMORTEM),
    _wrote("a guide to errors", ERROR_GUIDE),
    _wrote("a letter that apologizes", APOLOGY),
    _wrote("a report that names its limits", LIMITS),
    _wrote("an answer of one line", "The token lives for 24 hours after logout (auth/refresh.py:41).\n"),
    _wrote("a text in Japanese", "# 報告\n\nトークンはログアウト後も24時間有効です。\n"),
    _wrote("a text in UTF-16", REPORT.encode("utf-16")),
    _wrote("a list of open items", "# Open\n\n- TODO: bind tokens to devices\n- Ask legal about logs\n",
           criteria(changed("report.md") + '\nallow = ["placeholder"]')),
    Scenario("a package with an empty __init__.py", criteria(changed("src/**/*.py")),
             {"src/pkg/__init__.py": "", "src/pkg/slug.py": PROGRAM}),
    Scenario("a program was changed among others", criteria(changed("src/*.py")),
             {"src/a.py": PROGRAM.replace("[a-z0-9]", "[a-z0-9_]")},
             {"src/a.py": PROGRAM, "src/b.py": "B = 1\n", "src/empty.py": ""}),
    Scenario("facts that fit", FACTS, {"facts.json": '{"title": "Findings", "findings": ["a"]}'},
             {"s.json": SCHEMA}),
    Scenario("an empty list that the schema allows",
             'allow = ["empty"]\n'
             + criteria(changed("f.json"), _check("schema", "f.json", 'schema_file = "s.json"')),
             {"f.json": "[]\n"}, {"s.json": '{"type": "array"}'}),
    Scenario("a JSON answer with an error that is null", criteria(changed("r.json")),
             {"r.json": '{"error": null, "rows": [1, 2, 3]}'}),
    Scenario("a table", criteria(changed("f.csv"), _check("min_bytes", "f.csv", "bytes = 20")),
             {"f.csv": "year,revenue\n2020,1.2\n2021,1.4\n2022,1.9\n"}),
    Scenario("a log that ends well", criteria(changed("run.log")), {"run.log": _LONG_LOG + "done\n"}),
    Scenario("the indentation was repaired", criteria(changed("a.py")),
             {"a.py": "def f():\n    return 1\n"}, {"a.py": "def f():\n  return 1\n"}),
    Scenario("settings with comments", criteria(changed("tsconfig.json")),
             {"tsconfig.json": '{\n  // strict\n  "compilerOptions": {"strict": true}\n}\n'}),
    Scenario("a patch", criteria(changed("fix.diff"), matches("fix.diff", "(?m)^[+]")),
             {"fix.diff": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-print(1)\n+print(2)\n"}),
    Scenario("a file was moved", MOVED,
             move("a.md", "new/a.md"),
             {"a.md": REPORT}),
    Scenario("a file was restored", RESTORED, {"a.md": REPORT}, {"a.md": "broken", "b/a.md": REPORT}),
    Scenario("line ends were the task, and a pattern says so", criteria(matches("a.md", r"\A[^\r]+\z")),
             {"a.md": REPORT}, {"a.md": REPORT.replace("\n", "\r\n")}),
    Scenario("a copy was the task", 'allow = ["copy"]\n' + criteria(changed("b.env")),
             {"b.env": "A=1\n"}, {"a.env": "A=1\n"}),
    _wrote("a text about placeholders", "# TODO comments\n\nWrite `TODO(name)`. Lorem ipsum is for tests.\n"),
    _wrote("only a traceback, as asked for", TRACEBACK,
           criteria(changed("report.md") + '\nallow = ["error"]')),
    Scenario("a program with an old comment", criteria(changed("a.py")),
             {"a.py": "x = 2  # TODO: rename\n"}, {"a.py": "x = 1  # TODO: rename\n"}),
    Scenario("a table was sorted", criteria(changed("a.csv")), {"a.csv": "n\n1\n2\n"}, {"a.csv": "n\n2\n1\n"}),
]  # fmt: skip


# -- The contract, the baseline, the criteria and the facts of a gate ------------------------------

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="runs POSIX programs")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "corpus.db"


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    path = folder / "work.gate.toml"
    path.write_text(CHANGED_REPORT, encoding="utf-8")
    return path


def check(db: Path, contract: Path, agent: str | None = None, **options: Any) -> GateReport:
    with Engine(db) as engine:
        return engine.gate_check(contract, agent, **options)


def start(db: Path, contract: Path, text: str | None = None, *, restart: bool = False) -> None:
    if text is not None:
        contract.write_text(text, encoding="utf-8")
    as_owner(db, start_gate, contract, restart=restart)


def start_approved(db: Path, contract: Path, *more: str) -> None:
    """Start a gate that asks for a changed report and more, and approve its commands."""
    start(db, contract, criteria(changed("report.md"), *more))
    as_owner(db, approve_contract, contract, inline_code=True)


def write_report(contract: Path, text: str = REPORT) -> None:
    write_files(contract.parent, {"report.md": text})


def codes(report: GateReport) -> list[str]:
    return [finding.code for finding in report.findings]


def command(*words: str, more: str = "") -> str:
    return f'check = "command"\ncommand = {json.dumps(words)}\n{more}'


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[criteria", "is not TOML"),
        ("porpose = ''\n" + CHANGED_REPORT, "porpose: unknown key; did you mean purpose?"),
        ("criteria = []", "criteria: must have 1 or more items"),
        (criteria('check = "exists"\nfiel = "a"'), "criterion c1: fiel: unknown key"),
        (criteria('check = "exists"'), "criterion c1: check exists needs the key file"),
        (criteria(f"{exists('a')}\nbytes = 3"), "criterion c1: check exists has no key bytes"),
        (criteria(exists("../a")), "criterion c1: file: must be a path below"),
        (criteria(exists("a"), exists("b")).replace("c2", "c1"), "two criteria have the id c1"),
        (criteria(command("true")), "no criterion names a file"),
        (criteria(exists("a") + '\nlevel = "should"'), "one criterion must have the level must"),
        (criteria(exists("a") + '\nlevel = "could"'), "criterion c1: level"),
        (criteria('check = "matches"\nfile = "a"\npattern = "x*"'), "pattern: matches the empty"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_key_and_the_reason(
    contract: Path, text: str, expected: str
) -> None:
    contract.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        load_contract(contract)
    assert error.value.code == "bad_contract"
    assert f"{contract}: " in error.value.message
    assert expected in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("files", "expected"),
    [({}, "does not exist"), ({"s.json": '{"type": "objekt"}'}, "'objekt' is not valid")],
)
def test_a_gate_does_not_start_with_a_schema_that_is_none(
    db: Path, contract: Path, files: dict[str, str], expected: str
) -> None:
    write_files(contract.parent, files)
    text = criteria('check = "schema"\nfile = "a.json"\nschema_file = "s.json"')
    with pytest.raises(ConfigurationError, match="bad_contract") as error:
        start(db, contract, text)
    assert expected in error.value.message


def test_a_schema_reaches_nothing_outside_and_takes_linear_time(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *words, **_: requests.append(words))
    write_files(contract.parent, {
        "remote.json": '{"$ref": "http://127.0.0.1:9/schema.json"}',
        "slow.json": '{"type": "string", "pattern": "^(a+)+$"}',
        "ahead.json": '{"pattern": "(?=a)"}',
        "keys.json": '{"type": "string", "patternProperties": {"(a+)+$": {}}}',
    })  # fmt: skip
    schemas = [f'check = "schema"\nfile = "a.json"\nschema_file = "{name}.json"'
               for name in ("remote", "slow", "ahead", "keys")]  # fmt: skip
    start(db, contract, criteria(*schemas))
    write_files(contract.parent, {"a.json": json.dumps("a" * 5000 + "!")})
    report = check(db, contract)
    assert [r.result for r in report.criteria] == ["unknown", "not_met", "unknown", "unknown"]
    assert not requests


def test_a_schema_that_a_glob_names_is_still_no_work(db: Path, contract: Path) -> None:
    write_files(contract.parent, {"s.json": "{}"})
    schema = 'check = "schema"\nfile = "f.json"\nschema_file = "s.json"'
    start(db, contract, criteria(changed("*.json"), schema))
    write_files(contract.parent, {"s.json": "[]", "f.json": '{"x": 1}'})
    assert "edited_input" in codes(check(db, contract))


def test_a_should_criterion_is_reported_and_does_not_fail(db: Path, contract: Path) -> None:
    should = '\nlevel = "should"'
    start(
        db,
        contract,
        criteria(changed("report.md"), exists("a.csv") + should, command("true") + should),
    )
    write_report(contract)
    report = check(db, contract)
    assert (report.verdict, report.met) == ("success", 1)
    assert [(r.level, r.result) for r in report.criteria] == [
        ("must", "met"), ("should", "not_met"), ("should", "unknown")
    ]  # fmt: skip
    assert report.message == "1 of 3 criteria are met; c2 (should): not met: a.csv: does not exist"
    assert report.facts[1:] == [
        f"c{n} (should): {r}"
        for n, r in (
            (2, "not met: a.csv: does not exist"),
            (3, f"unknown: {report.criteria[2].reason}"),
        )
    ]
    # What is only wished for is not judged by its content, and what must be comes first.
    write_files(contract.parent, {"a.csv": ""})
    assert check(db, contract).verdict == "success"
    write_report(contract, "Done.\n")
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("failed", ["error"])
    assert "holds only a report of work" in report.message


# -- the baseline ---------------------------------------------------------------------------------


def test_a_second_start_needs_restart_and_is_in_the_audit(db: Path, contract: Path) -> None:
    start(db, contract)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    with pytest.raises(UsageError, match="gate_started"):
        start(db, contract)
    write_report(contract)
    start(db, contract, restart=True)
    report = check(db, contract)
    assert (report.restarts, report.verdict) == (1, "failed")
    rows = [row for row in audit_rows(db) if row["kind"] == "gate"]
    assert [row["details"]["step"] for row in rows] == ["restart", "check"]
    assert "work" not in json.dumps(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gate_baseline SET baseline = replace(baseline, '\"files\":[', '\"files\":[ ')",
        "DELETE FROM gate_baseline",
    ],
)
def test_an_edited_baseline_is_no_success(db: Path, contract: Path, statement: str) -> None:
    write_report(contract, "# Draft\n\nThe draft of the report.\n")
    start(db, contract)
    write_report(contract)
    assert check(db, contract).verdict == "success"
    with apsw.Connection(str(db)) as database:
        database.execute(statement)
    report = check(db, contract)
    assert report.verdict == "unknown"
    assert codes(report)[0] == "edited_baseline"


def test_approved_contracts_are_listed(db: Path, contract: Path) -> None:
    start_approved(db, contract)
    listed = invoke("gate", "approve", "--json", "--db", db).json()
    assert [file["location"] for file in listed["contracts"]] == [str(contract)]
    assert invoke("gate", "approve", "--db", db).out.startswith(f"location {contract}, ")
    assert invoke("gate", "approve", "--undo", "--db", db).code == 2


def test_the_gate_and_the_corpus_are_no_work(contract: Path) -> None:
    folder = contract.parent
    db = folder / "notes"
    write_report(contract)
    start(db, contract, criteria(exists("report.md"), exists("**")))
    as_owner(db, approve_contract, contract, inline_code=True)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    write_files(folder, {"notes.published/0123456789abcdef/manifest.json": "{}"})
    assert codes(check(db, contract)) == ["no_work"]
    write_files(folder, {"notes.md": "A file whose name begins like the corpus's is work."})
    assert check(db, contract).verdict == "success"


def test_a_contract_cannot_name_itself_as_work(db: Path, contract: Path) -> None:
    start(db, contract, criteria(exists("work.gate.toml"), exists("c.db"), exists("*.md")))
    write_report(contract)
    report = check(db, contract)
    assert report.criteria[0].result == "not_met"
    assert "belongs to the gate" in report.criteria[0].reason


def test_a_contract_that_names_too_many_files_does_not_start(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolebundle.gate.files.MAX_MATCHES", 2)
    write_files(contract.parent, {f"{n}.md": "text" for n in range(3)})
    with pytest.raises(ConfigurationError, match="too many files"):
        start(db, contract, criteria(exists("*.md")))


@on_posix
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "large").write_bytes(b"12345")
    for name, expected in [
        ("pipe", "special file"), ("link", "symbolic link"), (".", "folder"),
        ("none", "does not exist"), ("large", "over 4 bytes"), ("a\x00b", "name"),
    ]:  # fmt: skip
        with pytest.raises(NotReadable, match=expected):
            read_regular(tmp_path / name, 4)


# -- edited inputs --------------------------------------------------------------------------------


@on_posix
def test_a_script_that_judges_must_not_change(db: Path, contract: Path) -> None:
    write_files(contract.parent, {"check.sh": "exit 1\n"})
    start_approved(db, contract, command("sh", "./check.sh"))
    write_report(contract)
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("failed", [])
    write_files(contract.parent, {"check.sh": "exit 0\n"})
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("unknown", ["edited_input"])


# -- commands -------------------------------------------------------------------------------------


@on_posix
def test_a_command_is_run_only_if_the_contract_is_approved_as_it_is(
    db: Path, contract: Path
) -> None:
    folder = contract.parent
    text = criteria(changed("report.md"), command("touch", "ran"))
    start(db, contract, text)
    write_report(contract)
    report = check(db, contract)
    assert (report.verdict, report.criteria[1].result) == ("unknown", "unknown")
    assert not (folder / "ran").exists()

    as_owner(db, approve_contract, contract, inline_code=True)
    assert check(db, contract, no_command="not here").verdict == "unknown"
    assert not (folder / "ran").exists()
    assert check(db, contract).verdict == "success"
    assert (folder / "ran").exists()

    (folder / "ran").unlink()
    contract.write_text(text + "\n# changed\n", encoding="utf-8")
    report = check(db, contract)
    assert codes(report) == ["edited_contract"]
    assert not (folder / "ran").exists()

    contract.write_text(text, encoding="utf-8")
    assert as_owner(db, revoke_contract, contract) == str(contract)
    with pytest.raises(UsageError, match="not_approved"):
        as_owner(db, revoke_contract, contract)
    assert check(db, contract).verdict == "unknown"


@pytest.mark.sample(3)
@on_posix
@pytest.mark.parametrize(
    ("words", "more", "result", "expected"),
    [
        (["true"], "", "met", "exit code 0"),
        (["false"], "", "not_met", "exit code 1"),
        (["sleep", "30"], "seconds = 0.05", "unknown", "did not end within 0.05 s"),
        (["no-such-program"], "", "unknown", "cannot be started"),
        (["test", "$(touch pwned)", "=", "x"], "", "not_met", "exit code 1"),
        (["cat"], "seconds = 5.0", "met", "exit code 0"),
    ],
)
def test_a_command_s_exit_code_decides(
    db: Path, contract: Path, words: list[str], more: str, result: str, expected: str
) -> None:
    start_approved(db, contract, command(*words, more=more))
    write_report(contract)
    report = check(db, contract)
    assert report.criteria[1].result == result, report.criteria[1]
    assert expected in report.criteria[1].reason
    assert report.verdict == {"met": "success", "not_met": "failed", "unknown": "unknown"}[result]
    assert not (contract.parent / "pwned").exists()


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [
        (["sh", "-c", "exit 0"], True), (["/bin/bash", "-lc", "x"], True), (["env", "A=1", "sh"], True),
        (["timeout", "5", "python3", "-c", "x"], True), (["python", "-Bc", "x"], True),
        (["cmd.exe", "/c", "x"], True), (["perl", "-e", "x"], True), (["node", "--eval", "x"], True),
        (["python3"], True), (["python", "-B", "-X", "dev", "-c", "import os.path"], True),
        (["sh", "./check.sh"], False), (["python", "-m", "pytest", "-c", "x"], False),
        (["pytest", "-q"], False), (["git", "grep", "-e", "sh"], False), (["make", "test"], False),
        (["node", "check.js"], False), (["grep", "-c", "python", "a.md"], False),
    ],
)  # fmt: skip
def test_a_shell_needs_its_own_approval(
    db: Path, contract: Path, words: list[str], is_refused: bool
) -> None:
    start(db, contract, criteria(changed("report.md"), command(*words)))
    outcome = invoke("gate", "approve", contract, "--db", db)
    assert outcome.code == (2 if is_refused else 0)
    assert ("[inline_code]" in outcome.err) == is_refused
    allowed = invoke("gate", "approve", contract, "--inline-code", "--db", db)
    assert allowed.code == 0
    assert f"- {shlex.join(words)}" in allowed.out


def test_facts_and_no_server_run_commands(db: Path, contract: Path) -> None:
    start_approved(db, contract, command("touch", "ran"))
    assert invoke("gate", "facts", contract, "--db", db).code == 0
    assert not (contract.parent / "ran").exists()
    assert not [name for name in (*METHODS, *(tool.name for tool in TOOLS)) if "gate" in name]


# -- the corpus -----------------------------------------------------------------------------------


def test_a_draft_must_pass_verify(tmp_path: Path, contract: Path) -> None:
    # Of the documents, ``ada`` and ``bob`` see all, and all but one.
    secret = plain_document("secret", ["the token plan"], scope="hr")
    note = plain_document("note", ["the token plan of the note"], scope="engineering")
    policed = build(tmp_path, [secret, note], name="policed.db")
    ada = {"scopes": ["*"], "access_level": "internal"}
    set_policy(policed, {"ada": ada, "bob": {**ada, "scopes": ["engineering"]}})
    verify = 'check = "verify"\nfile = "report.md"'
    start(policed, contract, criteria(changed("report.md"), verify))

    def verdict_of(text: str, agent: str) -> str:
        write_report(contract, text)
        return check(policed, contract, agent).verdict

    quote = 'The owner says: "the token plan of the note" (note.md:1-1).\n'
    assert verdict_of(quote, "ada") == "success"
    assert verdict_of(quote.replace("plan of", "plan without"), "ada") == "failed"
    assert verdict_of("# Nothing\n\n- here\n- there\n", "ada") != "success"
    hidden = 'It is said: "the token plan" (secret.md:1-1).\n'
    assert verdict_of(hidden, "bob") == "failed"
    with pytest.raises(AccessDenied):
        verdict_of(quote, "eve")
    unnamed_report = check(policed, contract)
    assert unnamed_report.verdict == "unknown"
    assert "name an agent" in unnamed_report.criteria[1].reason


# -- What `gate hook` answers to the host of an agent: only exit code 2 blocks, and never without end


@pytest.fixture
def begun(db: Path, contract: Path) -> Path:
    """A contract whose gate was started, and whose work is not done."""
    start(db, contract)
    return contract


def hook(*arguments: str | Path, stdin: str = "", form: str = "claude-code") -> Outcome:
    return invoke("gate", "hook", form, *arguments, stdin=stdin)


def event(name: str, **fields: Any) -> str:
    common = {"session_id": "abc", "cwd": "/nowhere", "hook_event_name": name}
    return json.dumps(common | fields)


def stop(*, active: bool = False) -> str:
    return event("Stop", stop_hook_active=active)


def test_a_stop_is_blocked_with_the_reason_on_standard_error(db: Path, begun: Path) -> None:
    outcome = hook(begun, "--db", db, stdin=stop())
    assert (outcome.code, outcome.out) == (2, "")
    assert "report.md: does not exist" in outcome.err
    write_report(begun)
    stopped = hook(begun, "--db", db, stdin=stop())
    assert (stopped.code, stopped.out, stopped.err) == (0, "", "")


def test_stop_hook_active_allows_the_stop_and_claims_nothing(db: Path, begun: Path) -> None:
    outcome = hook(begun, "--db", db, stdin=stop(active=True))
    assert outcome.code == 0
    assert "NO success" in json.loads(outcome.out)["systemMessage"]
    insisting = hook(begun, "--retries", "3", "--db", db, stdin=stop(active=True))
    assert insisting.code == 2


@pytest.mark.parametrize("active", [False, True])
def test_a_hook_allows_the_stop_after_its_retries_and_a_prompt_begins_again(
    db: Path, begun: Path, active: bool
) -> None:
    def ask() -> Outcome:
        return hook(begun, "--retries", "2", "--db", db, stdin=stop(active=active))

    assert [ask().code for _ in range(4)] == [2, 2, 0, 0]
    assert "blocked 2 times" in json.loads(ask().out)["systemMessage"]
    prompt = hook(begun, "--db", db, stdin=event("UserPromptSubmit", prompt="x"))
    assert prompt.code == 0
    assert prompt.out.startswith("work.gate.toml: failed; 0 of 1 criteria are met\n")
    assert [ask().code for _ in range(3)] == [2, 2, 0]
    start(db, begun, restart=True)
    assert ask().code == 2


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit"])
def test_facts_are_context(db: Path, begun: Path, name: str) -> None:
    outcome = hook(begun, "--db", db, stdin=event(name))
    assert outcome.code == 0
    assert "report.md: does not exist" in outcome.out


def test_a_broken_setup_never_blocks_and_never_claims_success(
    db: Path, begun: Path, tmp_path: Path
) -> None:
    files = {"broken.toml": "criteria = 3", "other.toml": CHANGED_REPORT}
    folder = write_files(begun.parent, files)
    policed = tmp_path / "policed.db"
    start(policed, begun)
    set_policy(policed, {})
    uses: list[tuple[str, tuple[str | Path, ...]]] = [
        ("claude-code", ("none.toml", "--db", db)),
        ("another-form", (begun, "--db", db)),
        ("exit-code", (begun, "--no-such-option", "--db", db)),
        ("exit-code", (folder / "broken.toml", "--db", db)),
        ("exit-code", (folder / "other.toml", "--db", db)),
        ("exit-code", (begun, "--agent", "nobody", "--db", policed)),
        # An edited baseline cannot keep an agent in a loop.
        ("exit-code", (begun, "--db", db)),
    ]
    with apsw.Connection(str(db)) as database:
        database.execute("UPDATE gate_baseline SET baseline = '{}'")
    for form, arguments in uses:
        outcome = hook(*arguments, stdin=stop(), form=form)
        assert outcome.code == 1, (arguments, outcome)
        assert "NO success" in outcome.err
        assert "Traceback" not in outcome.err


_reports = st.builds(
    GateReport,
    verdict=st.sampled_from(["success", "failed", "unknown"]),
    message=st.text(max_size=20),
    contract=st.just("c.toml"),
    started_at=st.sampled_from([None, "2026-11-22T12:00:00Z"]),
    blocks=st.integers(0, 5),
    met=st.just(0),
    criteria=st.just([]),
)


@given(
    report=_reports,
    form=st.sampled_from(["claude-code", "exit-code"]),
    is_retry=st.booleans(),
    retries=st.none() | st.integers(0, 4),
)
def test_every_answer_ends_within_the_retries(
    report: GateReport, form: Any, is_retry: bool, retries: int | None
) -> None:
    blocked = 0
    while True:
        answer = answer_stop(report, form, is_retry=is_retry, retries=retries)
        if answer.exit_code != BLOCKS:
            break
        blocked += 1
        assert answer.error
        assert answer.blocks == report.blocks + 1
        report = report.model_copy(update={"blocks": answer.blocks})
        assert blocked <= (DEFAULT_RETRIES if retries is None else retries)
        assert retries is not None or not is_retry
    if report.verdict == "success":
        assert (answer.exit_code, blocked, answer.output, answer.error) == (0, 0, "", "")
    else:
        assert "NO success" in answer.output + answer.error
        assert (answer.exit_code == 0) == (form == "claude-code")


def test_what_cannot_be_counted_does_not_block(db: Path, begun: Path) -> None:
    full = StorageError("storage_full", "the disk is full", "free some space")
    with patch("rolebundle.interfaces.cli.checks.count_blocks", side_effect=full):
        assert hook(begun, "--db", db, form="exit-code").code == 1


# -- What is substance, what is empty, and what is no result ---------------------------------------

NAMES = ("a.md", "a.rst", "a.txt", "a.js", "a.py", "a.yaml", "a.html", "Makefile", "a.xyz")
_texts = st.text(st.sampled_from("abß é#*-<>|`:[]0 \n\t"), max_size=60)


def substance(name: str, text: str | bytes) -> str:
    return content_of(name, text.encode() if isinstance(text, str) else text).substance


@given(st.sampled_from(NAMES), _texts, st.integers(0, 60))
@example("a.js", "#é", 0)
@example("a.md", "0\n-", 0)
def test_what_nobody_sees_is_no_substance(name: str, text: str, at: int) -> None:
    before = substance(name, text)
    assert substance(name, text.replace("\n", "\r\n")) == before
    # A line of marks may underline a heading, which an empty line between them makes a paragraph.
    is_underlined = name in ("a.md", "a.rst") and re.search(r"(?m)\n[^\w\n]+$", text)
    gap = "\n\n" if is_underlined else "\n"
    assert substance(name, text.replace(gap, f"{gap}\n") + "\n") == before
    assert substance(name, text[:at] + "\u200b" + text[at:]) == before
    assert substance(name, unicodedata.normalize("NFD", text)) == before
    assert substance(name, b"\xef\xbb\xbf" + text.encode()) == before


@given(st.sampled_from([*NAMES, "a.json", "a.csv", "a.zip", "a.png"]), st.binary(max_size=300))
def test_every_content_is_judged(name: str, data: bytes) -> None:
    content = content_of(name, data)
    assert content.substance or not content.body
    assert len(content.wrong_kind) < 200


def _archive(members: dict[str, str]) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return data.getvalue()


def test_an_archive_is_its_members() -> None:
    one = _archive({"a.txt": "a", "b.txt": "b"})
    assert substance("a.zip", one) == substance("a.zip", _archive({"b.txt": "b", "a.txt": "a"}))
    assert substance("a.zip", one) != substance("a.zip", _archive({"a.txt": "a"}))
    assert not substance("a.zip", _archive({"a.txt": "", "folder/": ""}))
    assert content_of("a.zip", one[:40]).wrong_kind


RESULTS = [
    "42", "Yes.", "Failed tests: 0. Passed: 14.", "Error rate: 0.2% (was 1.4%).",
    "Error handling was moved to the edge.", "Not found in 2019; first seen in 2020.",
    "Todo app: a list of items", "See [Add a user](users.md), and press <Enter>.",
    "**ERROR 12: no date.** Write the date.\n\n**fatal: locked.** Wait.\n\nThen go on.\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_what_is_a_result(text: str) -> None:
    content = content_of("a.md", text.encode())
    assert (content.error, list(content.placeholders)) == ("", [])
    assert content.substance


MESSAGES = {
    "a report of work": [
        "I've created the report with all five sections.\n\nLet me know if you'd like any changes!",
        "# Review\n\nAll tasks are done. The review covers the three modules.", "Saved to review.md.",
        "Done!", "I have added tests for:\n- empty lists\n- long names",
        "Ich habe den Bericht erstellt.", "Le rapport a été rédigé.", "El informe ha sido creado.",
        "任务已完成。", "レポートを作成しました。", "Отчёт готов.",
    ],
    "a refusal": [
        "I can't help with that request.", "As an AI language model, I have no opinion on wine.",
        "I was unable to open the file because\nthe sandbox has no network at all today.",
        "Es tut mir leid, aber ich konnte die Datei nicht öffnen.", "No puedo acceder al archivo.",
        "申し訳ありませんが、作成することができませんでした。", "抱歉,我无法访问该文件。",
    ],
    "a promise": [
        "I'll start by reading the sources. Then I'll write the review.", "Working on it...",
        "The full report will be available soon.", "Je vais maintenant rédiger le texte.",
    ],
    "a list of tasks": ["- [ ] Collect sources\n- [ ] Write the summary\n"],
    "a question": ["Should I include the appendix?", "Please provide the figures of May.",
                   "Before I begin, could you tell me who will read it?"],
    "a status": ["(no output)", "null", "[object Object]", "None", "OK", "Exited with code 0",
                 "Reached maximum number of turns (30). Stopping."],
    "an error": [
        "bash: line 1: jq: command not found", "curl: (6) Could not resolve host: a.example",
        "du: cannot read '/root': Permission denied\n" * 3, "404: Not Found", "Segmentation fault",
        "╷\n│ Error: No lock file\n│\n│ To make the lock file, run:\n│   terraform init\n╵",
        "Usage: export [options]\n\nOptions:\n  -o, --output <f>  file\n\nerror: missing argument 'x'",
    ],
    "a stack trace": [
        'Exception in thread "main" java.lang.Error: x\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)',
        "panic: no data\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:8 +0x1d\nexit status 2",
        "thread 'main' panicked at src/main.rs:4:10:\ncalled `unwrap()` on a `None` value",
    ],
    "a page": ["<html><head><title>Log in</title></head><body><h1>Sign in</h1>"
               "<form>Email <input name=a> Password <input name=b></form></body></html>"],
    "a call of a tool": [
        "<tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\n</tool_call>",
        "Thought: I need the file.\nAction: read\nObservation: Error: quota exceeded",
        'event: error\ndata: {"type": "error"}',
    ],
    "an answer of a program": [
        '"Task completed successfully."', '{"stopReason": "error"}', '{"success": true}',
        '{"type": "message", "role": "assistant", "content": [], "usage": {"output_tokens": 2}}',
        '{"stdout": "", "stderr": "", "exit_code": 0}', "{'status': 'completed'}",
    ],
    "words of a conversation": ["Sure! Here's the poem you asked for:", "Hope this helps!"],
}  # fmt: skip


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_only_a_message_is_no_result(kind: str) -> None:
    # A program's answer as Markdown is of the wrong kind, too.
    for text in MESSAGES[kind]:
        content = content_of("a.txt", text.encode())
        assert content.error, text
        report = (
            f"# Figures\n\n{text}\n\nRevenue grew from 1.2 to 3.4 million, mostly in the north. "
        )
        more = "Costs were flat, and one store closed in May because its lease had ended.\n" * 3
        assert not content_of("a.md", (report + more).encode()).error, text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # Content that looks like a message.
        ("a.md", "I'm sorry, but the blue jacket is sold out. We can offer the grey one for 89 EUR.\n"),
        ("a.md", "I reviewed the flow. The reset token stays valid after use (auth/reset.py:88).\n"),
        ("a.md", "- 404 Not Found: the id is wrong; do not retry.\n- 503: retry after a minute.\n"),
        ("a.md", "| what | do |\n|---|---|\n| Permission denied | ask Ines |\n"),
        ("a.txt", "2026-11-22 09:14:02 inserted=1838 skipped=2\n2026-11-22 09:14:09 error: 0\n"),
        ("a.json", '{"not_found": "Not found", "done": "Done"}'),
        ("a.json", '[{"id": 1, "title": "Buy milk", "status": "done"}]'),
        ("a.yaml", "denied: Access denied\nready: Done\n"), ("a.sh", 'rsync -a src/ dst/\necho "Done"\n'),
        ("a.sql", "SELECT * FROM jobs WHERE message LIKE '%timed out%';\n"), ("a.csv", "name\nAda\n"),
        ("VERSION", "1.2.3\n"), ("flags/checkout", "true\n"),
        # Files that by their name are to hold such text.
        ("fixtures/429.json", '{"type": "error", "error": {"message": "Too many requests"}}'),
        ("404.html", "<html><title>Not found</title><h1>404</h1><p>Page not found</p></html>"),
        ("CHANGELOG.md", "- Added tests for the parser\n"), ("prompts/a.txt", "You are an editor.\n"),
        ("health.json", '{"status": "ok"}'), ("app.log", "curl: (6) Could not resolve host: a\n"),
        ("templates/bug.md", "**What happened?**\n[Describe what you saw]\n"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_message_is_a_result(name: str, text: str) -> None:
    content = content_of(name, text.encode())
    assert (content.error, content.wrong_kind, list(content.placeholders)) == ("", "", [])
    assert content.substance


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "The module reads the file and returns a list of words.\n"),
        ("a.yaml", "The settings of the server were derived from the manual.\n"),
        ("a.csv", "The table has one row for each region.\n"), ("a.css", "A dark theme.\n"),
        ("a.patch", "The patch changes one line.\n"),
        ("a.md", '{"path": "a.md", "content": "# Review"}'),
    ],
)  # fmt: skip
def test_prose_is_no_program_and_no_data(name: str, text: str) -> None:
    assert content_of(name, text.encode()).wrong_kind


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "import re\n\n# ... rest of the code remains unchanged ...\n"),
        ("a.ts", "export function f() {\n  // Your code here\n}\n"), ("a.js", "x()\n// ... existing code\n"),
        ("a.md", "# One\n\nText.\n\n(The rest of the chapter is unchanged.)\n"),
        ("a.md", "| Risk | Impact |\n|---|---|\n| [risk] | [impact] |\n"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_a_placeholder(name: str, text: str) -> None:
    assert content_of(name, text.encode()).placeholders


@lengths
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "unit", ["error ", "error: ", "[", "<!--", "{", "a: ", "sorry ", "<h1", "# ", "|"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.csv", "a.json"])
def test_a_text_takes_linear_time(name: str, unit: str, length: int) -> None:
    data = (unit * (length // len(unit)) + "x").encode()
    with linear_time(length):
        content_of(name, data)


# -- False completions are never a success, and honest ones are ------------------------------------


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp("gate") / "corpus.db")
    yield workspace
    workspace.close()


def attempt(workspace: Workspace, folder: Path, scenario: Scenario) -> GateReport:
    contract = folder / CONTRACT
    contract.write_text(scenario.contract, encoding="utf-8")
    write_files(folder, scenario.before)
    if scenario.started:
        start_gate(workspace, contract)
    scenario.perform(folder)
    if scenario.edited is not None:
        contract.write_text(scenario.edited, encoding="utf-8")
    return Engine(workspace).gate_check(contract)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "scenario", [*FALSE_COMPLETIONS, *HONEST_COMPLETIONS], ids=lambda scenario: scenario.name
)
def test_only_an_honest_completion_is_a_success(
    scenario: Scenario, workspace: Workspace, tmp_path: Path
) -> None:
    report = attempt(workspace, tmp_path, scenario)
    is_success = report.verdict == "success"
    assert is_success == (scenario in HONEST_COMPLETIONS), report.model_dump_json(indent=1)
