"""Metadata: front matter, manifests, attributes, and what counts before what."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.office.parts import zipped
from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.ingest import utc_text
from rolebundle.errors import ConfigurationError, DocumentError
from rolebundle.ingest import metadata as resolving
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.front_matter import front_matter
from rolebundle.ingest.manifests import FileDefaults, parse_manifest
from rolebundle.ingest.metadata import METADATA_KEYS, flattened
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.storage.opening import open_reader
from support.amounts import linear_time
from support.commands import invoke
from support.corpora import all_documents
from support.reading import read_document
from support.source_tree import write_files

# -- Precedence of metadata: front matter, manifest, flags, inferred values ------------------------


def resolve(path: str, declared: dict[str, Any], inferred: dict[str, Any]) -> DocumentMetadata:
    defaults = FileDefaults(Authority(default_source="s"))
    parsed = ParsedDocument(declared=declared, inferred=inferred, declared_at=2)
    return resolving.resolve(path, defaults, parsed)


# One value per key, different from every default.
VALUES = {
    "document_id": "d", "source_id": "s", "title": "t", "uri": "u", "document_type": "type",
    "domain": "dom", "trust_tier": "preferred", "updated_at": "2026-01-02", "language": "no",
    "valid_from": "2026-01-02T12:00:00+01:00", "valid_until": "2026-12-31",
    "source_kind": "kind", "sensitivity": "public", "origin": "external", "scope": "team",
    "tags": ["a"], "applicable_roles": ["r"], "excluded_roles": ["x"], "retrieval_hints": ["h h"],
    "supersedes": ["old"], "contradicts": ["other"],
}  # fmt: skip
STORED = {
    key: tuple(value) if isinstance(value, list) else value for key, value in VALUES.items()
} | {
    # A date is its first second, and as the end of a time its last.
    "updated_at": "2026-01-02T00:00:00Z",
    "valid_from": "2026-01-02T11:00:00Z",
    "valid_until": "2026-12-31T23:59:59Z",
}
# Keys that other tools use, and the keys under which their values are stored.
OTHER_KEYS = {"keywords": "tags", "authors": "retrieval_hints", "author": "retrieval_hints"}


def ingested(folder: Path, files: dict[str, str], *flags: str) -> dict[str, DocumentMetadata]:
    tree = write_files(folder / "notes", files)
    meta = [part for flag in flags for part in ("--meta", flag)]
    outcome = invoke("ingest", tree, "--lexical-only", *meta, "--db", folder / "c.db")
    assert outcome.code == 0, outcome.err
    with open_reader(folder / "c.db") as corpus:
        return {metadata.document_id: metadata for _, metadata in all_documents(corpus)}


def test_every_key_can_be_declared_everywhere(tmp_path):
    """One file per key, then all keys at once as flags."""
    assert {*VALUES, *OTHER_KEYS} == set(METADATA_KEYS)
    declared = {key: repr(value).replace("'", '"') for key, value in VALUES.items()}
    rules = "".join(f"[[rule]]\nglob = '{k}.md'\n{k} = {text}\n" for k, text in declared.items())
    places = {
        "yaml": {f"{k}.md": f"---\n{k}: {text}\n---\n\nText.\n" for k, text in declared.items()},
        "toml": {f"{k}.md": f"+++\n{k} = {text}\n+++\n\nText.\n" for k, text in declared.items()},
        "manifest": {"rolebundle.toml": rules, **{f"{key}.md": "Text.\n" for key in declared}},
    }
    for place, files in places.items():
        documents = ingested(tmp_path / place, files)
        named = {"document_id": "d", "source_id": "s/source_id.md"}
        for key in VALUES:
            metadata = documents[named.get(key, f"notes/{key}.md")]
            assert getattr(metadata, key) == STORED[key], (key, place)
    joined = {k: ",".join(v) if isinstance(v, list) else v for k, v in VALUES.items()}
    flags = [f"{key}={value}" for key, value in joined.items()]
    [metadata] = ingested(tmp_path / "flags", {"a.md": "Text.\n"}, *flags).values()
    assert {key: getattr(metadata, key) for key in VALUES} == STORED


def test_a_document_that_is_never_valid_is_refused(tmp_path):
    (tmp_path / "rolebundle.toml").write_text("[defaults]\nvalid_until = 2026-06-30\n")
    (tmp_path / "a.md").write_text("---\nvalid_from: 2026-07-01\n---\n\nText.\n")
    (tmp_path / "b.md").write_text("---\nvalid_from: 2026-06-30\n---\n\nText.\n")
    outcome = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path / "c.db")
    assert outcome.code == 10
    assert "a.md:2: valid_from 2026-07-01T00:00:00Z is after valid_until" in outcome.err
    with open_reader(tmp_path / "c.db") as corpus:
        [(_, metadata)] = all_documents(corpus)
    assert metadata.valid_until == "2026-06-30T23:59:59Z"


@pytest.mark.parametrize(("declared", "tags", "hints"), [
    ("keywords: sync, offline clocks; merge", ("sync", "offline clocks", "merge"), ()),
    ("keywords: [a, 'b, c']\ntags: [z, a]", ("z", "a", "b, c"), ()),
    ("author: Kim, A.", (), ("Kim, A.",)),
    ("authors: Kim, A. and Lee, B.; Wu\nauthor: Kim, A.", (), ("Kim, A.", "Lee, B.", "Wu")),
    ("authors:\n- name: Kim\n  mail: k@example.org\n- Lee", (), ("Kim", "Lee")),
    ("author: Kim\nretrieval_hints: [who did it]", (), ("who did it", "Kim")),
    ("authors: [1741101, Kim]", (), ("1741101", "Kim")),
    ("keywords:\nauthors: ''\nauthor: []", (), ()),
])  # fmt: skip
def test_keywords_are_tags_and_authors_are_hints(tmp_path, declared, tags, hints):
    [metadata] = ingested(tmp_path, {"a.md": f"---\n{declared}\n---\n\nText.\n"}).values()
    assert (metadata.tags, metadata.retrieval_hints) == (tags, hints)


def test_very_many_authors_and_very_long_keywords_are_cut(tmp_path):
    crowd = "; ".join(f"Author {number}" for number in range(1000))
    words = [f"word-{number}" for number in range(500)]
    front = f"---\nauthors: {crowd}\nkeywords: {' '.join(words)}\n---\n\nText.\n"
    [metadata] = ingested(tmp_path, {"a.md": front}).values()
    assert len(metadata.retrieval_hints) == 50
    assert " ".join(metadata.tags).split() == words


def test_a_rejected_record_does_not_affect_the_others(tmp_path):
    """One line of many: its file is taken, and the run still ends as a mistake does."""
    lines = ('{"_id": "a", "text": "x", "metadata": {"updated_at": 5.5}}',
             '{"_id": "b", "text": "y", "metadata": {"trust_tier": "divine"}}',
             '{"_id": "c", "text": "z"}')  # fmt: skip
    (tmp_path / "notes.jsonl").write_text("\n".join(lines), encoding="utf-8")
    wrong = ("notes.jsonl:1: updated_at = 5.5", "must be an ISO 8601 date", "notes.jsonl:2: trust")
    command = ("ingest", tmp_path / "notes.jsonl", "--lexical-only", "--db", tmp_path / "c")
    for _ in ("the first run", "and every other"):
        outcome = invoke(*command)
        assert outcome.code == 10
        assert all(text in outcome.err for text in wrong)
    with open_reader(tmp_path / "c") as corpus:
        assert [metadata.document_id for _, metadata in all_documents(corpus)] == ["c"]


def test_defaults(tmp_path):
    [metadata] = ingested(tmp_path, {"deep/a_plain-note.md": "Text.\n"}).values()
    assert (metadata.document_id, metadata.source_id) == ("notes/deep/a_plain-note.md", "notes")
    assert (metadata.title, metadata.uri) == ("a plain note", "deep/a_plain-note.md")
    governing = (metadata.trust_tier, metadata.sensitivity, metadata.origin)
    assert governing == ("general", "internal", "internal")
    assert (metadata.scope, metadata.updated_at, metadata.tags) == ("shared", None, ())


def test_precedence(tmp_path):
    """For each key alone: what a document leaves open, the manifest says, and so on."""
    files = {
        "rolebundle.toml": "[defaults]\ntitle = 'top'\ndomain = 'top'\nsource_kind = 'top'\n"
        "[[rule]]\nglob = 'deep/**'\ndomain = 'rule'\n"
        "[[rule]]\nglob = 'deep/er/*'\ndomain = 'later-rule'\n",
        "deep/er/a.md": "---\ntitle: own\n---\n\nText.\n",
        "deep/er/b.md": "Text.\n",
        "c.md": "Text.\n",
    }
    flags = ("title=flag", "language=flag", "domain=flag")
    documents = ingested(tmp_path, files, *flags)
    names = ("deep/er/a.md", "deep/er/b.md", "c.md")
    assert [
        (found.title, found.domain, found.source_kind, found.language)
        for found in (documents[f"notes/{name}"] for name in names)
    ] == [
        ("own", "later-rule", "top", "flag"),
        ("top", "later-rule", "top", "flag"),
        ("top", "top", "top", "flag"),
    ]


def test_inferred_metadata_has_the_lowest_precedence(tmp_path):
    page = "<html lang='de'><head><title>Of the page</title></head><body><p>Text.</p></body></html>"
    [metadata] = ingested(tmp_path, {"a.html": page}).values()
    assert (metadata.title, metadata.language) == ("Of the page", "de")
    [metadata] = ingested(tmp_path, {"a.html": page}, "title=flag", "language=fr").values()
    assert (metadata.title, metadata.language) == ("flag", "fr")


def test_invalid_inferred_values_are_ignored():
    inferred = {"title": "", "trust_tier": "divine", "nonsense": 1, "language": "de"}
    metadata = resolve("a.md", {}, inferred)
    assert (metadata.title, metadata.trust_tier, metadata.language) == ("a", "general", "de")


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("trust_teir", "trust_tier"), ("trustTier", "trust_tier"), ("Trust-Tier", "trust_tier"),
        ("sensitvity", "sensitivity"), ("Scope", "scope"), ("scpoe", "scope"), ("scopes", "scope"),
        ("orgin", "origin"), ("supercedes", "supersedes"), ("supersede", "supersedes"),
        ("exclude_roles", "excluded_roles"), ("applicable_role", "applicable_roles"),
        ("valid_untill", "valid_until"), ("validFrom", "valid_from"), ("source-id", "source_id"),
        ("documentid", "document_id"), ("contradict", "contradicts"),
    ],
)  # fmt: skip
def test_a_misspelled_governance_key_refuses_the_document(key, meant):
    with pytest.raises(DocumentError, match=rf"unknown key '{key}'; did you mean {meant}\?"):
        resolve("a.md", {key: "x"}, {})


@pytest.mark.parametrize(
    "key",
    "score slope superseded superseded_by contracts documents documented source sources resource_id"
    " original tier trust trust_level sensitive roles role valid doc_id status layout name".split(),
)
def test_other_words_are_attributes(key):
    assert resolve("a.md", {key: "x"}, {}).attributes == ((key, ("x",)),)


def test_all_mistakes_are_in_one_message():
    declared = {
        "trust_teir": "x", "sensitivity": "secret", "applicable_roles": ["No Role"],
        "valid_from": "2026-02-01", "valid_until": "2026-01-01", "title": {"en": "t"}, "layout": "p",
    }  # fmt: skip
    with pytest.raises(DocumentError) as caught:
        resolve("a.md", declared, {})
    assert caught.value.message.startswith("a.md:2: ")
    for part in ("trust_teir", "sensitivity = 'secret'", "No Role", "is after valid_until"):
        assert part in caught.value.message
    assert not any(key in caught.value.message for key in ("title", "layout", "Input"))


# -- other tools ---------------------------------------------------------------------------------

TOOLS = {
    "obsidian": "---\naliases: [Note]\ntags:\n  - a\n  - b\ncssclasses: wide\n"
    "created: 2023-01-01\nupdated: 2024-05-03T10:00\n---\n",
    "hugo": '+++\ntitle = "T"\ndate = 2024-05-03T10:00:00+02:00\ndraft = false\n'
    'tags = ["a", "b"]\n[menu.main]\nweight = 10\n+++\n',
    "jekyll": "---\nlayout: post\ntitle: T\ndate: 2024-05-03 10:00:00 +0200\ncategories: x\n"
    "tags: a, b\n---\n",
    "docusaurus": "---\nid: intro\nsidebar_position: 1\ntags: [{label: a, permalink: /a}, b]\n"
    "last_update:\n  date: 2024-05-03\n  author: Kim\n---\n",
    "skill": "---\nname: pdf-forms\ndescription: Fill in forms.\nallowed-tools: Read, Write\n"
    "tags: [a, b]\nmetadata:\n  version: 1.10\n  date: unknown\nmodified: 3 May 2024\n---\n",
    "zettlr": "---\ntitle: T\nid: 20240503100000\nkeywords:\n  - a\n  - b\ndate: 2024/05/03\n---\n",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_front_matter_of_other_tools(tmp_path, tool):
    """Each has the tags a and b and a date on 2024-05-03; its other keys become attributes."""
    [metadata] = ingested(tmp_path, {"a.md": f"{TOOLS[tool]}\nText.\n"}).values()
    assert metadata.tags == ("a", "b")
    assert str(metadata.updated_at).startswith("2024-05-03T")
    expected = {
        "obsidian": ("cssclasses", "wide"), "hugo": ("menu.main.weight", "10"),
        "jekyll": ("layout", "post"), "docusaurus": ("last_update.author", "Kim"),
        "skill": ("metadata.version", "1.10"), "zettlr": ("id", "20240503100000"),
    }[tool]  # fmt: skip
    assert dict(metadata.attributes)[expected[0]] == (expected[1],)


def test_the_nearest_date_counts_and_what_is_none_is_an_attribute():
    declared = {"date": "2024-01-01", "lastmod": "someday", "updated": "2024-02-01"}
    metadata = resolve("a.md", declared, {"updated_at": "2020-01-01"})
    assert metadata.updated_at == "2024-02-01T00:00:00Z"
    assert dict(metadata.attributes)["lastmod"] == ("someday",)
    metadata = resolve("a.md", {**declared, "updated_at": "2025-01-01"}, {})
    assert metadata.updated_at == "2025-01-01T00:00:00Z"


def test_single_values_are_lists_of_one():
    lists = {"tags": "x", "supersedes": "x", "contradicts": "x", "retrieval_hints": "x, y"}
    metadata = resolve("a.md", {**lists, "applicable_roles": "r, s"}, {})
    assert (metadata.tags, metadata.supersedes, metadata.contradicts) == (("x",),) * 3
    assert metadata.retrieval_hints == ("x, y",)
    assert metadata.applicable_roles == ("r", "s")


@pytest.mark.parametrize("value", ["", {"en": "t"}, ["a", "b"], "x" * 1001])
def test_a_title_of_another_form_is_no_mistake(value):
    assert resolve("a_b.md", {"title": value}, {}).title == "a b"


def test_properties_of_a_format_are_attributes():
    metadata = resolve("a.md", {"status": "x"}, {"title": "t", "from": ["k", "l"]})
    assert metadata.attributes == (("from", ("k", "l")), ("status", ("x",)))


def test_attributes_are_limited():
    declared = {f"key{number:03}": "x" * 5000 for number in range(500)}
    attributes = resolve("a.md", declared, {}).attributes
    assert len(attributes) == 100
    assert {len(text) for _, texts in attributes for text in texts} == {1000}


@pytest.mark.parametrize(("text", "utc"), [
    ("2024-5-3", "2024-05-03T00:00:00Z"), ("2024/05/03 10:00", "2024-05-03T10:00:00Z"),
    ("2024-05-03 10:00:00 +0200", "2024-05-03T08:00:00Z"),
    ("2024-05-03T10:00:00.123456789-07:00", "2024-05-03T17:00:00Z"),
    ("3 May 2024", "2024-05-03T00:00:00Z"), ("May 3, 2024", "2024-05-03T00:00:00Z"),
    ("Fri, 03 May 2024 10:00:00 GMT", "2024-05-03T10:00:00Z"),
    ("1714723200", "2024-05-03T08:00:00Z"), ("1714723200123", "2024-05-03T08:00:00Z"),
    ("03/05/2024", None), ("2024-13-01", None), ("May 2024", None), ("1.10", None),
    ("0001-01-01T00:00:00+14:00", None),
])  # fmt: skip
def test_dates_as_tools_write_them(text, utc):
    assert utc_text(text) == utc


@given(st.text(alphabet="0123456789-/:.TZ+ ,MayFri()GMTapm", max_size=40) | st.text(max_size=120))
def test_any_text_is_a_date_or_none(text):
    found = utc_text(text)
    assert found is None or utc_text(found) == found


# -- bad values ----------------------------------------------------------------------------------


def test_ignored_keys(tmp_path):
    files = {
        "rolebundle.toml": "ignore_keys = ['draft', 'weight']",
        "deep/a.md": "---\ndraft: true\nweight: 3\ntitle: own\n---\n\nText.\n",
    }
    [metadata] = ingested(tmp_path, files).values()
    assert metadata.title == "own"
    assert metadata.attributes == ()
    (tmp_path / "notes" / "b.md").write_text("---\nscopes: 3\n---\n\nText.\n", encoding="utf-8")
    outcome = invoke("ingest", tmp_path / "notes", "--lexical-only", "--db", tmp_path / "c.db")
    assert outcome.code == 10
    assert "b.md:2: unknown key 'scopes'" in outcome.err


# -- front matter ----------------------------------------------------------------------------------


def read(text):
    document, body_index = front_matter(text.split("\n"), "docs/a.md")
    return document.declared, document.declared_at, body_index, document.notes


def declared(text):
    values, _, _, notes = read(text)
    return values, notes


def test_yaml_scalars_are_texts_as_they_were_written():
    values, declared_at, body_index, notes = read(
        "---\ntitle: A plain title\ntags: [a, on, no]\ndate: 2026-03-01 10:00\nlanguage: no\n"
        "version: 1.10\nid: 007\ndraft: true\nnone: ~\nempty:\nquoted: 'null'\n---\nbody"
    )
    assert values == {
        "title": "A plain title", "tags": ["a", "on", "no"], "date": "2026-03-01 10:00",
        "language": "no", "version": "1.10", "id": "007", "draft": "true", "none": None,
        "empty": None, "quoted": "null",
    }  # fmt: skip
    assert (declared_at, body_index, notes) == (2, 12, ())


@pytest.mark.parametrize("text", [
    "", "text", "---\nno end\n\ntext", " ---\n---", "---\n- a\n- b\n---", "---\n# T\n\nWords.\n---",
])  # fmt: skip
def test_text_without_fences_is_not_front_matter(text):
    assert read(text) == ({}, 1, 0, ())


def test_tags_build_nothing_and_aliases_are_followed():
    text = "a: !!python/object/apply:os.system [x]\nb: !t v\nc: &x [1]\nd: *x"
    values, notes = declared(f"---\n{text}\n---\n")
    assert values == {"a": ["x"], "b": "v", "c": ["1"], "d": ["1"]}
    assert notes == ()


@pytest.mark.parametrize(("text", "values", "note"), [
    ("---\n---", {}, ""),
    ("---\na: 1\na: 2\n---", {"a": "2"}, ""),
    ("---\na: {b: 1, b: 2}\n---", {"a": {"b": "2"}}, ""),
    ("---\ntitle: A: b\nx: [1]\n---", {"title": "A: b", "x": ["1"]}, "docs/a.md:2: "),
    ("---\nok: 1\na: [1\nb: 'x\n---", {"ok": "1", "a": "[1", "b": "x"}, "read line by line"),
    ("---\ntags:\n\t- a\n\t- b\n---", {"tags": ["a", "b"]}, "line by line"),
    ("---\ntitle: {{ title }}\n---", {"title": "{{ title }}"}, "line by line"),
    ("---\na: *unknown\n---", {"a": "*unknown"}, "undefined alias"),
    ("---\na: &x [*x]\n---", {"a": "&x [*x]"}, "too deep"),
    ("---\na: b\n<<: {a: 1}\n---", {"a": "b <<: {a: 1}"}, "merge keys"),
    ("---\na: " + "[" * 50 + "]" * 50 + "\n---", {"a": "[" * 50 + "]" * 50}, "levels"),
    ("---\na: " + "x" * 70_000 + "\n---", {}, "64 KiB"),
    ("+++\na = 1\na = 2\n+++", {}, "docs/a.md:3: front matter: not valid TOML"),
    ("+++\na = " + "[" * 5000 + "\n+++", {}, "TOML"),
])  # fmt: skip
def test_what_cannot_be_read_costs_only_itself(text, values, note):
    found, notes = declared(text)
    assert found == values
    assert note in "".join(notes)


@pytest.mark.parametrize(("text", "line"), [
    ("---\ntitle: A: b\nsensitivity: confidential\n---", 2),
    ("---\nx: [1\nmeta: {a: b, 'Trust-Teir' : untrusted}\n---", 3),
    ("---\nscope: a\nscope: b\n---", 3),
    ("---\nscpoe: a\nscpoe: b\n---", 3),
    ("---\na: [\n? scope\n: hr\n---", 5),
    ("---\nx: &x {scope: hr}\n<<: *x\n---", 2),
    ("---\n- scope: hr\n---", 2),
    ("---\nscope: hr\na: " + "x" * 70_000 + "\n---", 2),
    ("+++\ntitle = x\nvalid_until = 2026-01-01\n+++", 2),
])  # fmt: skip
def test_what_may_hide_a_governing_key_refuses_the_document(text, line):
    with pytest.raises(DocumentError, match=r"may declare|duplicate key") as caught:
        read(text)
    assert caught.value.code == "bad_front_matter"
    assert caught.value.message.startswith(f"docs/a.md:{line}: front matter: ")


def test_an_alias_bomb_does_not_expand():
    levels = "\n".join(f"k{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))
    values, [note] = declared(f"---\nk0: &a0 x\n{levels}\n---")
    assert "more than 20000 values" in note
    assert values["k29"].startswith("&a29 [*a28")


def test_unreadable_front_matter_takes_linear_time():
    for text in ("a" * 20_000, "a " * 10_000, "a: [" + "a, " * 7_000, "a:\n" * 7_000, "'" * 20_000):
        with linear_time(20_000):
            read(f"---\nx: [\n{text}\n---\n")


SIGNS = "ab:-[]{}&*!|>?'\"#%@,\n 01.<~"


@given(st.text() | st.text(alphabet=SIGNS + "23456789\\x"), st.sampled_from(["---", "+++"]))
def test_any_text_is_read_or_raises(text, fence):
    try:
        front = read(f"{fence}\n{text}\n{fence}\nbody")
    except DocumentError as error:
        assert error.code == "bad_front_matter"
        return
    assert all(isinstance(key, str) for key in front[0])


GOVERNING = ["scope", "trust_teir", "Sensitivity", "valid-until"]


@given(st.sampled_from(GOVERNING), *[st.text(alphabet=SIGNS, max_size=40)] * 2)
def test_a_typing_error_elsewhere_never_hides_a_governing_key(key, above, below):
    """Law: a governing key at the beginning of a line is read, or the document is refused."""
    text = f"---\n{above}\n{key}: x\n{below}\n---\n"
    try:
        front = read(text)
    except DocumentError:
        return
    if {"---", "..."} & {line.rstrip() for line in above.split("\n")}:
        return
    is_inside_a_text = any(marker in above for marker in "|>'\"#[{")
    assert key in front[0] or is_inside_a_text


# -- A manifest that is wrong: the error names the file, the section, the key and what is allowed


@pytest.mark.parametrize(("text", "message"), [
    ("x = ", "not readable as TOML"),
    ("rules = []", "m.toml: rules: unknown key; did you mean rule?"),
    ("rule = [1]", "m.toml: rule 1: must be an object"),
    ("[[rule]]\ndomain = 'x'", "m.toml: rule 1.glob: is missing"),
    ("[[rule]]\nglob = 'a'\n[[rule]]\nglob = 'b'\nreadr = 'x'", "rule 2.readr: unknown key"),
    ("[[rule]]\nglob = 'a'\nreader = 'x'", "m.toml rule 1: no reader is called 'x'"),
    ("[[rule]]\nglob = 'a'\nmax_trust = 'most'", "m.toml: rule 1.max_trust: must be one of"),
    ("max_trust = 'general '", 'did you mean general? (it is "general ")'),
    ("[chunking]\nsice = 3", "m.toml: chunking.sice: must be one of 'size', 'maximum'; did you mean size?"),
    ("[defaults]\nsensitivity = 'x'\nscope = 3", " (and 1 more mistake)"),
])  # fmt: skip
def test_what_is_wrong(text, message):
    with pytest.raises(ConfigurationError) as caught:
        parse_manifest(text.encode(), Path("m.toml"))
    assert message in caught.value.message
    assert caught.value.hint


# -- Attributes are words of the index and filters, and nothing else -------------------------------

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), _values, max_size=5))
def test_any_values_become_lines_of_text(values):
    attributes = flattened(values)
    assert list(attributes) == sorted(attributes)
    for key, texts in attributes:
        assert key and ":" not in key and texts
        assert all(text and text == " ".join(text.split()) for text in texts)


def test_they_are_found_by_their_words_in_the_passage_that_shows_them(tmp_path):
    front = "---\nproject: Zephyr\nmetadata: {owner: Ana Kim}\nsecret_level: 7\n---\n\n"
    parts = "\n".join(f"## Part {n}\n\n{'Words of a part. ' * 60}\n" for n in range(3))
    (tmp_path / "a.md").write_text(f"{front}# A\n\n{parts}", encoding="utf-8")
    (tmp_path / "b.md").write_text("# B\n\nOther words.\n", encoding="utf-8")
    db = tmp_path / "c.db"
    ingest = ("ingest", tmp_path, "--lexical-only", "--json", "--db", db)
    assert invoke(*ingest).code == 0
    retrieve = ("retrieve", "--lexical-only", "--format", "json", "--db", db)
    [found] = invoke(*retrieve, "zephyr kim").json()["selected"]
    assert found["citation"]["locator"].startswith("a.md:3")
    narrowed = invoke(*retrieve, "words", "--where", "attributes.project=zephyr").json()
    assert {chunk["title"] for chunk in narrowed["selected"]} == {"A"}
    record = invoke("get", found["document_id"], "--json", "--db", db).json()["document"]
    assert record["attributes"]["metadata.owner"] == ["Ana Kim"]


# -- What a reader left out is said of the document -------------------------------------------------


def test_what_a_reader_left_out_is_stored_with_the_document(tmp_path):
    spoofed = "---\nreading.partly_read: true\nreading: {notes: none}\n---\nwords\n"
    files = {"all.zip": zipped({"offer.pdf": "x"}), "a.md": spoofed}
    tree, at_db = write_files(tmp_path / "tree", files), ("--db", tmp_path / "c.db", "--json")
    invoke("ingest", tree, "--lexical-only", *at_db)
    own, archive = invoke("ls", *at_db).json()["documents"]
    assert not own.keys() & {"notes", "partly_read"}
    assert (archive["notes"], archive["partly_read"]) == (["left out: the content of 1 file"], True)
    assert '1 passage, partly read; "left out: the' in invoke("ls", *at_db[:2]).out
    assert invoke("status", *at_db).json()["partly_read"] == 1
    assert "partly read: 1 document" in invoke("status", *at_db[:2]).out
    found = invoke("retrieve", "content", "--lexical-only", "--format", "json", *at_db[:2]).json()
    assert found["selected"] == []


# -- What a person wrote in front matter is shown as its lines --------------------------------------


def test_front_matter_of_a_person_is_a_passage_of_its_lines():
    page = (
        "---\ntitle: x\nphone: +49 431 4711\ncontact:\n  - Anna Berg\ntrust_tier: general\n"
        "layout: post\ndoor: kelp-4711\n\ndate: 2024-01-01\npath: /2024/01/x\n---\n# T\nbody\n"
    )
    for path, text in (("a.md", page), ("a.txt", page)):
        document = read_document(text, path)
        chunks = chunk_document("d", document, ChunkSettings())
        assert [(c.content, c.start_line, c.end_line, c.anchor) for c in chunks] == [
            ("phone: +49 431 4711\ncontact:\n  - Anna Berg", 3, 5, "front matter"),
            ("door: kelp-4711", 8, 8, "front matter 2"),
            ("# T\nbody", 13, 14, ""),
        ]
