"""Which files are read, and their dates."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rolebundle.contracts.ingest import Skipped
from rolebundle.errors import DocumentError
from rolebundle.ingest.manifests import FileDefaults, read_manifest
from rolebundle.ingest.prepare import inferred_at
from rolebundle.ingest.walk import FileEntry, read_bytes, walk
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.corpora import all_documents
from support.source_tree import Tree, write_files

# -- Listing files: order, hidden and generated folders, manifests; reading a file safely ----------

NO_DEFAULTS = FileDefaults()


def write(folder: Path, *names: str, **contents: str) -> None:
    """Files whose text is their name, and files with these contents."""
    write_files(folder, {name: name for name in names} | contents)


def walked(root: Path, start: Path | None = None) -> tuple[list[str], dict[str, str]]:
    entries = list(walk(root, start or root, NO_DEFAULTS, read_manifest(root)))
    paths = [entry.path for entry in entries if isinstance(entry, FileEntry)]
    return paths, {entry.path: entry.code for entry in entries if isinstance(entry, Skipped)}


def test_every_file_in_order(tmp_path):
    write(tmp_path, "b.md", "a/z.md", "a/b/c.md", "a.md", "B.md")
    paths, skipped = walked(tmp_path)
    assert paths == ["B.md", "a/b/c.md", "a/z.md", "a.md", "b.md"]
    assert skipped == {}


def test_hidden_and_generated(tmp_path):
    write(tmp_path, ".env", ".git/config", "node_modules/x/y.js", "__pycache__/a.pyc", "a.md")
    write(tmp_path, "deep/.hidden.md")
    paths, skipped = walked(tmp_path)
    assert paths == ["a.md"]
    names = (".env", ".git/", "node_modules/", "__pycache__/", "deep/.hidden.md")
    assert skipped == dict.fromkeys(names, "ignored")


# -- reading ------------------------------------------------------------------------------------


def test_read_bytes_raises(tmp_path):
    write(tmp_path, "a.md")
    (tmp_path / "link.md").symlink_to("a.md")
    os.mkfifo(tmp_path / "pipe")
    for name, cap, code in (
        ("a.md", 3, "too_large"),
        ("link.md", 100, "unreadable"),
        ("pipe", 100, "not_a_file"),
        (".", 100, "unreadable"),
        ("none", 100, "unreadable"),
    ):
        with pytest.raises(DocumentError) as caught:
            read_bytes(str(tmp_path / name), name, cap)
        assert caught.value.code == code
        assert caught.value.message.startswith(f"{name}: ")
        assert caught.value.hint


def test_a_glob_without_a_file_is_named(tmp_path):
    write(tmp_path, "a.md", "secret/c.md")
    text = "ignore = ['secret']\n[[rule]]\nglob = '/secret/**'\nscope = 'hr'\n"
    (tmp_path / "rolebundle.toml").write_text(text, "utf-8")
    notes = list(walk(tmp_path, tmp_path, NO_DEFAULTS, read_manifest(tmp_path)))[-2:]
    for glob, note in zip(("secret", "/secret/**"), notes, strict=True):
        assert isinstance(note, Skipped) and note.code == "glob_matches_nothing"
        assert note.message.startswith(f"rolebundle.toml: {glob!r} matches no file; ")


def test_a_glob_with_a_file_is_not_named(tmp_path):
    """Not even if the walk sees only a part of the manifest's files."""
    write(tmp_path, "a/b.md", "c/d.md", "c/e/f.md")
    text = "ignore = ['c/d.md']\n[[rule]]\nglob = 'a/*'\n[[rule]]\nglob = 'c/**'\n"
    (tmp_path / "rolebundle.toml").write_text(text, encoding="utf-8")
    for start in (tmp_path, tmp_path / "a", tmp_path / "c", tmp_path / "c" / "e" / "f.md"):
        codes = walked(tmp_path, start)[1]
        assert codes == ({} if start.name in ("a", "f.md") else {"c/d.md": "ignored"})
    excluded = frozenset({str(tmp_path / "a")})
    without_a = walk(tmp_path, tmp_path, NO_DEFAULTS, read_manifest(tmp_path), excluded=excluded)
    assert all(entry.path != "rolebundle.toml" for entry in without_a)


# -- What a walk leaves out: ignore files as git reads them, and what tools have generated ---------


def walked_ignored(
    root: Path, start: Path | None = None, *, ignore: bool = True
) -> tuple[list[str], dict[str, str]]:
    """The paths of the files, and path → reason of what is left out, without hidden names."""
    entries = walk(root, start or root, FileDefaults(), ignore=ignore)
    skipped = [entry for entry in entries if isinstance(entry, Skipped)]
    reasons = {entry.path: entry.message for entry in skipped if "hidden" not in entry.message}
    return [entry.path for entry in entries if isinstance(entry, FileEntry)], reasons


# -- ignore files ----------------------------------------------------------------------------------


def test_what_a_checkout_takes_over(tmp_path):
    """Not the `.gitignore` of the checkout around it; but its own exclude file."""
    ignoring = {".gitignore": "*.log\n", ".ignore": "*.bak\n", "lib/.git/info/exclude": "*.tmp\n"}
    names = ("a.log", "lib/a.log", "lib/b.tmp", "lib/c.bak", "lib/d.md", "lib/.git/HEAD")
    write(tmp_path, *names, **ignoring)
    assert walked_ignored(tmp_path)[0] == ["lib/a.log", "lib/d.md"]


def test_a_part_of_a_checkout(tmp_path):
    """The files above it count, unless they leave out what was named."""
    contents = {".gitignore": "*.log\nmade/\n", ".git/HEAD": ""}
    write(tmp_path, "docs/a.md", "docs/a.log", "made/a.md", "made/a.log", **contents)
    docs, generated = tmp_path / "docs", tmp_path / "made"
    assert walked_ignored(docs)[0] == ["a.md"]
    assert walked_ignored(generated)[0] == ["a.log", "a.md"]
    assert walked_ignored(tmp_path, docs / "a.log")[0] == ["docs/a.log"]


@pytest.mark.parametrize("content", [
    "\x00\x01", "[", "!", "/", "*a" * 9000, "a\\", "(" * 2000, "{a,b}*\n" * 2_000, "\ufeff*.log",
])  # fmt: skip
def test_malformed_ignore_files(tmp_path, content):
    write(tmp_path, "a.md", "b.log", **{".gitignore": content})
    assert "a.md" in walked_ignored(tmp_path)[0]


NAMES = ("a", "b", "a.md", "b.txt", "x")
PARTS = st.sampled_from([*NAMES, "*", "*.md", "?", "**", "[ab]", "a*"])
PATTERNS = st.builds(
    lambda bang, head, names, tail: bang + head + "/".join(names) + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/", "**/"]),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", " "]),
)
TREE = [f"{a}/{b}/{c}" for a in ("a", "b") for b in ("a", "b", "x") for c in ("a.md", "b.txt")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = tmp_path_factory.mktemp("checkout")
    write(root, *TREE, "a.md", "b.txt", "a/a.md", "x")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@settings(max_examples=20)
@given(st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=2))
@example(["[ab].md"], ["[!a].txt"])
def test_the_same_files_as_git(checkout, outer, inner):
    (checkout / ".gitignore").write_text("\n".join(outer) + "\n", encoding="utf-8")
    (checkout / "a" / ".gitignore").write_text("\n".join(inner) + "\n", encoding="utf-8")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=checkout, capture_output=True, check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    ).stdout.decode().split("\0")  # fmt: skip
    visible = {path for path in listed if path and not path.endswith(".gitignore")}
    assert set(walked_ignored(checkout)[0]) == visible


# -- what tools have generated ---------------------------------------------------------------------


def test_generated_folders_and_lock_files(tmp_path):
    write(
        tmp_path, "app/package.json", "app/node_modules/x/README.md", "app/dist/a.js",
        "app/build/a.js", "app/package-lock.json", "app/README.md", "rs/Cargo.toml",
        "rs/target/doc/a.html", "rs/Cargo.lock", "rs/tags", "py/env/pyvenv.cfg", "py/env/lib/a.py",
        "conda/conda-meta/history", "conda/a.py", "sphinx/conf.py", "sphinx/_build/a.html",
        "sphinx/index.rst", "js/jquery.min.js", "js/site.css.map",
    )  # fmt: skip
    paths, reasons = walked_ignored(tmp_path)
    assert paths == [
        "app/README.md", "app/package.json", "rs/Cargo.toml", "sphinx/conf.py", "sphinx/index.rst",
    ]  # fmt: skip
    assert reasons == {
        "app/build/": "build output", "app/dist/": "build output", "rs/target/": "build output",
        "app/node_modules/": "dependencies", "app/package-lock.json": "lock file",
        "rs/Cargo.lock": "lock file", "rs/tags": "index of ctags", "py/env/": "virtual environment",
        "conda/": "virtual environment", "sphinx/_build/": "build output",
        "js/jquery.min.js": "minified code", "js/site.css.map": "minified code",
    }  # fmt: skip
    assert len(walked_ignored(tmp_path, ignore=False)[0]) == 19
    assert walked_ignored(tmp_path / "js" / "jquery.min.js")[0] == ["jquery.min.js"], "it was named"
    assert walked_ignored(tmp_path / "py" / "env")[0] == ["lib/a.py", "pyvenv.cfg"], "it was named"


OF_NO_PERSON = {
    "~$report.docx": "file of a program",
    "Thumbs.db": "file of a program",
    "desktop.ini": "file of a program",
    "c.db-wal": "part of a database",
    "c.db-shm": "part of a database",
    "c.db-journal": "part of a database",
    "c.db.audit-wal": "part of a database",
    ".DS_Store": "hidden file",
    "._report.docx": "hidden file",
    ".~lock.report.odt#": "hidden file",
}


@pytest.mark.parametrize("ignore", [True, False])
def test_files_that_no_person_wrote(tmp_path, ignore):
    others = ["a~$.md", "c.db", "c.db.audit", "my desktop.ini", "trip-journal"]
    write(tmp_path, *OF_NO_PERSON, *others)
    shown = {name: why for name, why in OF_NO_PERSON.items() if why != "hidden file"}
    assert walked_ignored(tmp_path, ignore=ignore) == (others, shown)
    assert walked_ignored(tmp_path / "~$report.docx")[0] == []


def test_a_corpus_in_its_own_root_is_no_document(tmp_path):
    write(tmp_path, "a.md")
    words = ("ingest", tmp_path, "--lexical-only", "--db", tmp_path / "c.db", "--json")
    invoke(*words)
    with open_writer(tmp_path / "c.db"):
        assert (tmp_path / "c.db-wal").exists()
        assert invoke(*words).json()["documents"] == 1


def test_a_document_that_has_most_of_the_passages_is_named(tmp_path):
    db, docs = tmp_path / "c.db", tmp_path / "docs"
    write(docs, *(f"{number}.md" for number in range(10)))
    words = ("ingest", docs, "--lexical-only", "--db", db)
    log = "".join(f"# Day {n}\n\n{'The pump was started. ' * 60}\n\n" for n in range(20))
    write(docs, **{"pumps.md": log})
    said = "pumps.md: has 20 of the corpus's 30 passages; if few will ask for it, name it in"
    assert said in invoke(*words).err
    assert said in invoke("status", "--db", db).out
    assert "pumps.md" not in invoke(*words).err
    write(docs, **{".ignore": "pumps.md"})
    assert "pumps.md: has" not in invoke(*words).err
    assert "pumps.md: has" not in invoke("status", "--db", db).out


def test_folders_that_belong_to_a_corpus(tmp_path):
    for name in ("overlays", "published"):
        write(tmp_path, f"team.db.{name}/ab/manifest.json", f"other.{name}/a.md")
    write(tmp_path, "team.db")
    paths, reasons = walked_ignored(tmp_path)
    assert paths == ["other.overlays/a.md", "other.published/a.md", "team.db"]
    assert reasons == {"team.db.overlays/": "overlays", "team.db.published/": "published replicas"}


def test_documents_in_a_folder_called_build(tmp_path):
    folders = ("docs/build", "docs/target", "docs/dist", "docs")
    write(tmp_path, *(f"{folder}/a.md" for folder in folders))
    paths, reasons = walked_ignored(tmp_path)
    assert reasons == {}
    assert len(paths) == 4


# -- the corpus ------------------------------------------------------------------------------------


def paths_of(tree: Tree) -> set[str]:
    return {path for (path,) in tree.rows("SELECT path FROM file")}


@pytest.fixture
def world(tree):
    write(tree.root, "a.md", "notes/b.md", "notes/c.md", "dist/d.md")
    return tree


def test_new_rules_take_documents_out(world):
    world.ingest()
    write(world.root, **{".gitignore": "notes/\n", "package.json": "{}"})
    report = world.ingest()
    assert report.removed == 3
    assert {"dist/", "notes/"} <= {skip.path for skip in report.skipped}
    assert paths_of(world) == {"a.md", "package.json"}
    (world.root / ".gitignore").unlink()
    assert world.ingest().added == 2


def test_no_ignore_is_remembered(world):
    write(world.root, **{".gitignore": "*\n"})
    world.ingest(ignore=False)
    assert world.ingest().unchanged == 4
    assert world.ingest(ignore=True).removed == 4


def test_what_was_named_stays(world):
    """A later ingest of the folder above must not take it out again."""
    write(world.root, **{".gitignore": "notes/\n", "package.json": "{}"})
    world.ingest()
    world.ingest(world.root / "notes", world.root / "dist")
    named = {"a.md", "dist/d.md", "notes/b.md", "package.json"}
    assert paths_of(world) == named | {"notes/c.md"}, "its own rules do not count inside of it"
    report = world.ingest()
    assert (report.removed, report.unchanged) == (0, 5)


# -- Dates of files that declare none --------------------------------------------------------------

MAY, JUNE = 1_714_723_200, 1_717_401_600
"""2024-05-03 08:00 and 2024-06-03 08:00 in UTC."""


def write_dates(path: Path, text: str = "# A\n\nText.\n", *, at: int) -> None:
    write_files(path.parent, {path.name: text})
    os.utime(path, (at, at))


PROSE = "The hall of the club is closed in the summer and in the weeks around the end of the year, "
PROSE += "as the members decided at their last meeting.\n\n"
TEXTS_WITH_DATES = [
    ("Culture office\n2 November 2023\nOur reference: 7\n\nDear Ms Ek,\n", "2023-11-02"),
    ("# Order 7\n\nDate: 4 September 2023\n\nFitting: 3 October 2023.\n", "2023-09-04"),
    ("# Songs (version 2, 15 November 2023)\n\n1. Spring\n", "2023-11-15"),
    ("# Answer to the letter of 3 May 2023\n\nBonn, 5. Juni 2023\n\nDear Ms Ek,\n", "2023-06-05"),
    ("2023-01-05\n\nCalled.\n\n2023-02-07\n\nCalled again.\n", "2023-02-07"),
    ("Phone note 27 November 2023, 14:10\nUrs Ek, by Jo\n\n- Crane: 10 December.\n", "2023-11-27"),
    ("| Date | 2023-11-20 |\n|---|---|\n| Site | Quay |\n", "2023-11-20"),
    ("# Quay\n\nSigned 2 November 2023. " + "It changes the rules of the quay. " * 4, "2023-11-02"),
    (
        "# Lease\n\n"
        + "Between us and the club, who rent the quay. " * 4
        + "Concluded on 2 May 2023.",
        "2023-05-02",
    ),
    ("Lease of the quay\nFor the club. Dated 2\nMay 2023.\n", "2023-05-02"),
    ("# Vertrag\n\n" + "Wir mieten den Kai. " * 9 + "Geschlossen am 2. Mai 2023.", "2023-05-02"),
    ("Notes\n\n17 Oct  Ek: ill.\n18 Oct  Jo.\n2 Dec  Crane.\n", "2023-12-02"),
    (
        "# Notes\n\n4 May 2023, 10:15. Ek is ill.\n\n9 May 2023. Jo.\n\n9 May 2025. Fair.\n",
        "2023-05-09",
    ),
    ("# Quay\n\n9 May 2023 was hot.\n\n4 May 2022 was not.\n\n5 May 2023 too.\n", ""),
    ("The quay of 2 November 2023\nis closed.\n", ""),
    ("# Quay\n\n| Opened | 2023-11-20 |\n|---|---|\n| 2023-01-05 | Ek |\n", ""),
    ("# Letter\n\nDate: 4 May 2024\n\nA later day than that of the file.\n", ""),
    ("# Letter\n\nDate: 03/04/2023\n\nOf March or of April.\n", ""),
    ("# Changes\n\n## 2.1 (2023-05-01)\n\n- faster\n", ""),
    ("# Hall\n\n" + PROSE + "2 November 2023\n", ""),
]


def entry(seconds: float) -> FileEntry:
    return FileEntry("/a.md", "a.md", 1, int(seconds * 1e9), FileDefaults())


@pytest.mark.parametrize(
    ("seconds", "date"),
    [
        (MAY + 0.9, "2024-05-03T08:00:00Z"),
        (0, None),
        (315_532_800, None),  # 1980-01-01: what archives write if they know no time
        (-5, None),
        (1e11, "5138-11-16T09:46:40Z"),
        (1e13, None),
    ],
)
def test_the_time_of_a_file(seconds, date):
    assert inferred_at(entry(seconds)) == date


class TestIngest:
    def dates(self, tmp_path):
        run = invoke("ingest", tmp_path / "n", "--lexical-only", "--db", tmp_path / "c")
        assert run.code == 0, run
        with open_reader(tmp_path / "c") as corpus:
            documents = [metadata for _, metadata in all_documents(corpus)]
        return {found.document_id: (found.updated_at, found.inferred_at) for found in documents}

    def test_only_documents_without_a_date_get_one(self, tmp_path):
        write_dates(tmp_path / "n/a.md", at=MAY)
        write_dates(tmp_path / "n/b.md", "---\ndate: 2020-01-01\n---\n# B\n\nText.\n", at=MAY)
        page = "<meta name='last-modified' content='2021-01-01'><p>Some text.</p>"
        write_dates(tmp_path / "n/c.html", page, at=MAY)
        assert self.dates(tmp_path) == {
            "n/a.md": (None, "2024-05-03T08:00:00Z"),
            "n/b.md": ("2020-01-01T00:00:00Z", None),
            "n/c.html": ("2021-01-01T00:00:00Z", None),
        }

    def test_what_the_date_is_from(self, tmp_path):
        """Declared, in the name, of the format, of the file system, in this order."""
        declared = "---\nupdated_at: 2020-01-01\n---\nText.\n"
        page = "<meta name='last-modified' content='{}'><p>Some text.</p>"
        event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Fair\nDTSTART:20260301T100000Z\n"
        mail = "From: a@b.example\nSubject: {0}\nDate: {0} Mar 2026 10:00 +0000\n\nText.\n"
        files = {
            "2026-03-01 declared.md": declared, "2026-03-02 note.md": "Text.\n",
            "2026-03-03 page.html": page.format("2025-01-01"), "page.html": page.format("2025-01-01"),
            "Page 2025.html": page.format("2025-07-01"), "Page 2024.html": page.format("2025-07-01"),
            "Page 2026.html": page.format("2025-07-01"), "Note 2026.md": "Text.\n",
            "Page 2025-02.html": page.format("2025-07-01"), "Page 2025-07.html": page.format("2025-07-01"),
            "Re prices 2025.eml": mail.format(4),
            "Camp 2027 plan.md": "# Camp 2027, plan of 12 October 2023\n\nText.\n",
            "weekly jul 23.md": "Text.\n", "weekly jul 23.html": page.format("2025-07-01"),
            "weekly mar 24.html": page.format("2025-07-01"), "Report Nov 2023 (23 pages).md": "Text.\n",
            "fair.ics": f"{event}END:VEVENT\nEND:VCALENDAR\n", "note.md": "Text.\n",
            "2025-05-05 all.mbox": "".join(
                f"From a@b.example Sun Mar  {day} 10:00:00 2026\n{mail.format(day)}\n" for day in (1, 2)
            ),
        }  # fmt: skip
        for name, text in files.items():
            write_dates(tmp_path / "n" / name, text, at=MAY)
        assert invoke("ingest", tmp_path / "n", "--lexical-only", "--db", tmp_path / "c").code == 0
        listed = invoke("ls", "--json", "--db", tmp_path / "c").json()["documents"]
        dates = {
            one["path"]: (one.get("updated_at", "")[:10], one.get("dated_by"), "inferred_at" in one)
            for one in listed
        }
        assert dates == {
            "2026-03-01 declared.md": ("2020-01-01", None, False),
            "2026-03-02 note.md": ("2026-03-02", "name", False),
            "2026-03-03 page.html": ("2026-03-03", "name", False),
            "page.html": ("2025-01-01", "format", False),
            "Page 2025.html": ("2025-07-01", "name and format", False),
            "Page 2024.html": ("2024-12-31", "name without a day", False),
            "Page 2026.html": ("2026-01-01", "name without a day", False),
            "Note 2026.md": ("2026-01-01", "name without a day", False),
            "Page 2025-02.html": ("2025-02-28", "name without a day", False),
            "Page 2025-07.html": ("2025-07-01", "name without a day", False),
            "Re prices 2025.eml": ("2026-03-04", "format", False),
            "Camp 2027 plan.md": ("2023-10-12", "text", False),
            # A year or a day.
            "weekly jul 23.md": ("", None, True),
            "weekly jul 23.html": ("2025-07-01", "format", False),
            "weekly mar 24.html": ("2024-03-31", "name without a day", False),
            "Report Nov 2023 (23 pages).md": ("2023-11-01", "name without a day", False),
            "fair.ics": ("2026-03-01", "format", False),
            "note.md": ("", None, True),
            "2025-05-05 all.mbox": ("2026-03-02", "format", False),
        }
        shown = invoke("ls", "--db", tmp_path / "c").out
        for name, text in (
            ("2026-03-02 note.md", "2026-03-02 (by its name)"),
            ("Page 2025.html", "2025 (by its name)"),
            ("Page 2024.html", "2024 (by its name)"),
            ("Note 2026.md", "2026 (by its name)"),
            ("Page 2025-02.html", "2025-02 (by its name)"),
            ("Page 2025-07.html", "2025-07 (by its name)"),
            ("Report Nov 2023 (23 pages).md", "2023-11 (by its name)"),
            ("page.html", "2025-01-01 (by its properties)"),
            ("note.md", "file changed 2024-05-03"),
        ):
            [line] = [
                line for line in shown.splitlines() if line.lstrip('"').startswith(f"n/{name}")
            ]
            assert f"({text}, " in line

    @pytest.mark.parametrize(("text", "date"), TEXTS_WITH_DATES)
    def test_the_beginning_of_a_text_states_its_date(self, tmp_path, text, date):
        """Never a later one than that of the file, and none of another matter."""
        write_dates(tmp_path / "n" / "letter.md", text, at=MAY)
        [found] = self.dates(tmp_path).values()
        of_text = (f"{date}T00:00:00Z", None)
        assert found == (of_text if date else (None, "2024-05-03T08:00:00Z"))

    @pytest.mark.parametrize(
        ("name", "text", "date"),
        [
            ("rules 2023-11.md", "# Rules\n\nSheet of 2 November 2023, by Ek.\n", "2023-11-02"),
            ("rules 2023-11.md", "# Rules\n\nValid from 9 November 2023.\n", "2023-11-09"),
            ("prices 2023.md", "# Prices\n\nPrices of Ek, 2 May 2023\n\nTea: 2\n", "2023-05-02"),
            ("prices 2022.md", "# Prices\n\nValid from 2 May 2023.\n", "2022-01-01"),
        ],
    )
    def test_the_text_has_the_day_of_the_month_in_the_name(self, tmp_path, name, text, date):
        write_dates(tmp_path / "n" / name, text, at=MAY)
        assert self.dates(tmp_path) == {f"n/{name}": (f"{date}T00:00:00Z", None)}

    def test_a_touched_file_keeps_its_date(self, tmp_path):
        """The date is that of the text, as the corpus first saw it."""
        write_dates(tmp_path / "n/a.md", at=MAY)
        before = self.dates(tmp_path)
        os.utime(tmp_path / "n/a.md", (JUNE, JUNE))
        assert self.dates(tmp_path) == before
        write_dates(tmp_path / "n/a.md", "# A\n\nNew text.\n", at=JUNE)
        assert self.dates(tmp_path) == {"n/a.md": (None, "2024-06-03T08:00:00Z")}
