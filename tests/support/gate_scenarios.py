"""What agents do between `gate start` and `gate check`: false completions, and honest ones."""

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.source_tree import write_files

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
    ("a.zip", b"PK\x05\x06" + bytes(18)), ("a.gz", gzip.compress(b"")),
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
