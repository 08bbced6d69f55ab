"""Overlay files: what loads, what is inherited, and that nothing else gets through."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.errors import OverlayError
from rolebundle.govern.overlay_json import MAX_BYTES, MAX_DEPTH, merge, parse, validate
from rolebundle.govern.overlays import (
    ENVIRONMENT,
    MAX_PARENTS,
    ResolvedOverlay,
    digest_of,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
    problems_of,
)
from rolebundle.resources import data_folder

SHIPPED = sorted(path.stem for path in data_folder("overlays").glob("*.json"))
REFERENCE = (
    "competitive-analyst",
    "critic-reviewer",
    "docs-architect",
    "product-strategist",
    "security-reviewer",
)


def write(folder: Path, role_id: str, name: str = "", **keys: object) -> Path:
    path = folder / f"{name or role_id}.json"
    path.write_text(json.dumps({"version": "1.0", "role_id": role_id, **keys}), encoding="utf-8")
    return path


def refused(code: str, path: Path) -> OverlayError:
    with pytest.raises(OverlayError) as caught:
        load_file(path, [])
    assert caught.value.code == code
    assert caught.value.exit_code == 3
    assert caught.value.hint
    return caught.value


# What loads


def test_five_overlays_are_shipped() -> None:
    assert len(SHIPPED) == 5


@pytest.mark.parametrize("role_id", SHIPPED)
def test_each_shipped_overlay_loads(role_id: str) -> None:
    found = load_role(role_id, overlay_folders())
    assert found.overlay.role_id == role_id
    assert found.path == data_folder("overlays") / f"{role_id}.json"
    assert found.ancestors == ()
    assert len(found.digest) == 32


@pytest.mark.parametrize("role_id", REFERENCE)
def test_the_references_overlays_load_unmodified(shared: Path, role_id: str) -> None:
    folder = shared / "compat" / "knowledge-core" / "roles"
    found = load_role(role_id, [folder])
    written = json.loads((folder / f"{role_id}.json").read_text(encoding="utf-8"))
    assert holds(found.overlay.model_dump(), written)


def holds(whole: object, part: object) -> bool:
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and holds(whole[key], part[key]) for key in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    assert load_file(write(tmp_path, "a", name="draft"), []).overlay.role_id == "a"


def test_a_byte_order_mark_at_the_start_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, "a")
    plain = load_file(path, []).digest
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_file(path, []).digest == plain


def test_the_first_folder_wins(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    write(near, "a", label="near")
    write(far, "a", label="far")
    assert load_role("a", [near, far]).overlay.label == "near"
    assert load_role("a", [far, near]).overlay.label == "far"


def test_a_malformed_file_in_the_first_folder_is_not_passed_over(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    write(far, "a")
    (near / "a.json").symlink_to(near / "gone.json")
    with pytest.raises(OverlayError, match="there is no such overlay file"):
        load_role("a", [near, far])


# What does not


def test_a_missing_role_names_the_folders_and_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "security-reviewer")
    with pytest.raises(OverlayError) as caught:
        load_role("securty-reviewer", [tmp_path])
    assert caught.value.code == "overlay_missing"
    assert str(tmp_path) in caught.value.message
    assert "did you mean security-reviewer?" in caught.value.message


@pytest.mark.parametrize(
    "role_id",
    ["../secret", "", ".", "..", "a/b", "a\\b", "A", "a\n", "a\x00", "-a", "é", "a" * 65, "/etc/a"],
)
def test_a_role_id_never_leaves_the_folder(tmp_path: Path, role_id: str) -> None:
    folder = tmp_path / "overlays"
    folder.mkdir()
    write(tmp_path, "secret")
    for find in (load_role, locate):
        with pytest.raises(OverlayError) as caught:
            find(role_id, [folder])
        assert caught.value.code == "bad_role_id"


def test_a_role_has_to_be_called_like_its_file(tmp_path: Path) -> None:
    write(tmp_path, "b", name="a")
    with pytest.raises(OverlayError) as caught:
        load_role("a", [tmp_path])
    assert caught.value.code == "overlay_name_mismatch"


def test_a_parent_has_to_be_called_like_its_file(tmp_path: Path) -> None:
    write(tmp_path, "b", name="a")
    refused("overlay_name_mismatch", write(tmp_path, "c", extends="a"))


MINIMAL = '"version": "1.0", "role_id": "a"'


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "is not JSON"),
        ('{"version": "1.0",\n "role_id": }', "line 2, column 13", "is not JSON"),
        ("{} {}", "line 1, column 4", "is not JSON"),
        ("[]", "", "must be one JSON object"),
        ('"text"', "", "must be one JSON object"),
        ("null", "", "must be one JSON object"),
        (f'{{{MINIMAL}, "role_id": "b"}}', "", 'has the key "role_id" twice'),
        (
            f'{{{MINIMAL}, "source_policy": {{"forbidden_sources": [], "forbidden_sources": []}}}}',
            "source_policy",
            'has the key "forbidden_sources" twice',
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": NaN}}}}',
            "retrieval_policy.min_score",
            "NaN is not JSON",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": -Infinity}}}}',
            "retrieval_policy.min_score",
            "-Infinity is not JSON",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": 1e999}}}}',
            "retrieval_policy.min_score",
            "out of range",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"max_selected_chunks": {"9" * 5000}}}}}',
            "retrieval_policy.max_selected_chunks",
            "more than 18 digits",
        ),
        (f'{{{MINIMAL}, "anti_goals": ["\\ud800"]}}', "anti_goals[0]", "half a surrogate pair"),
        (f'{{{MINIMAL}, "\\udc00": 1}}', "", "half a surrogate pair"),
        (f'{{{MINIMAL}, "mission": "a\\u0000b"}}', "mission", r"\u0000"),
        ("[" * 100_000, "", "nested more than 64 levels deep"),
        ('{"x":' * 65 + "1" + "}" * 65, "x.x.x", "nested more than 64 levels deep"),
        (
            f'{{{MINIMAL}, "retrieval_polcy": {{}}}}',
            "retrieval_polcy",
            "unknown key; did you mean retrieval_policy?",
        ),
        (
            f'{{{MINIMAL}, "source_policy": {{"preferred_sources": [{{"pattern": "a", "bost": 1}}]}}}}',
            "source_policy.preferred_sources[0].bost",
            "unknown key; did you mean boost?",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"lexical_weight": 2}}}}',
            "retrieval_policy.lexical_weight",
            "(it is 2)",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"lexical_weight": 0.9}}}}',
            "retrieval_policy",
            "must be 1 ± 0.01, and is 1.6",
        ),
        (
            f'{{{MINIMAL}, "source_policy": {{"trust_tier_boosts": {{"prefered": 2}}}}}}',
            "source_policy.trust_tier_boosts.prefered",
            "did you mean preferred?",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"fusion": "rff"}}}}',
            "retrieval_policy.fusion",
            "did you mean rrf? (it is \"rff\")",
        ),
        (f'{{{MINIMAL}, "vocabulary": {{"boost_phrases": ["x", 1]}}}}', "vocabulary.boost_phrases[1]", "(it is 1)"),
        (f'{{{MINIMAL}, "label": null}}', "label", "(it is null)"),
        (f'{{{MINIMAL}, "extends": "../a"}}', "extends", "must match"),
        (f'{{{MINIMAL}, "extends": 1}}', "extends", "(it is 1)"),
        ('{"role_id": "a"}', "version", "is missing"),
        ('{"version": "2.0", "role_id": "a"}', "version", "'1.0'"),
        ('{"version": "1.0"}', "role_id", "is missing"),
    ],
)  # fmt: skip
def test_a_malformed_overlay_is_refused_with_its_place(
    tmp_path: Path, text: str, place: str, reason: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    error = refused("overlay_malformed", path)
    assert error.message.startswith(f"{path}: {place}: " if place else f"{path}: ")
    assert reason in error.message
    first = problems_of(path, [])[0]
    assert (first.place, reason in first.message) == (place, True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"role_id": "\xff"}', "is not UTF-8 at byte 13"),
        ('{"version": "1.0", "role_id": "a"}'.encode("utf-16"), "is not UTF-8 at byte 0"),
        (b" " * (MAX_BYTES + 1), "is longer than 1024 KiB"),
        (b'{"a": 1, \xef\xbb\xbf"b": 2}', "is not JSON"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert reason in refused("overlay_malformed", path).message


def test_depth_is_allowed_up_to_its_limit() -> None:
    assert isinstance(parse(b'{"x":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH), dict)


def test_all_problems_are_listed_and_the_error_counts_them(tmp_path: Path) -> None:
    path = write(tmp_path, "a", label=1, misson="", retrieval_policy={"fusion": "x", "k": 60})
    places = ["label", "retrieval_policy.fusion", "retrieval_policy.k", "misson"]
    assert sorted(problem.place for problem in problems_of(path, [])) == sorted(places)
    assert "(and 3 more)" in refused("overlay_malformed", path).message


def test_a_good_overlay_has_no_problems(tmp_path: Path) -> None:
    assert problems_of(write(tmp_path, "a"), []) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("folder", "pipe"):
        refused("overlay_unreadable", tmp_path / f"{name}.json")
        with pytest.raises(OverlayError, match="is not a regular file"):
            load_role(name, [tmp_path])
    refused("overlay_missing", tmp_path / "none.json")
    refused("overlay_unreadable", tmp_path / "a\x00.json")


# extends


def test_a_child_lies_over_its_parent(tmp_path: Path) -> None:
    write(
        tmp_path,
        "base",
        label="Base",
        mission="Read.",
        vocabulary={"boost_phrases": ["one", "two"], "synonyms": {"auth": ["login"]}},
        retrieval_policy={"freshness_max_age_days": 90, "max_selected_chunks": 4},
    )
    path = write(
        tmp_path,
        "child",
        extends="base",
        label="Child",
        vocabulary={"boost_phrases": ["three"], "synonyms": {"token": ["key"]}},
        retrieval_policy={"freshness_max_age_days": None},
    )
    found = load_role("child", [tmp_path])
    assert found.overlay.label == "Child"
    assert found.overlay.mission == "Read."
    assert found.overlay.extends == "base"
    assert found.overlay.vocabulary.boost_phrases == ["three"]
    assert found.overlay.vocabulary.synonyms == {"auth": ["login"], "token": ["key"]}
    assert found.overlay.retrieval_policy.max_selected_chunks == 4
    assert found.overlay.retrieval_policy.freshness_max_age_days is None
    assert found.ancestors == (tmp_path / "base.json",)
    assert load_file(path, []).digest == found.digest


def test_null_removes_what_the_parent_declares(tmp_path: Path) -> None:
    write(
        tmp_path,
        "base",
        label="Base",
        source_policy={"domain_boosts": {"law": 2, "code": 3}},
        synthesis_policy={"citation_style": "footnote"},
    )
    write(
        tmp_path,
        "child",
        extends="base",
        label=None,
        source_policy={"domain_boosts": {"law": None}},
        synthesis_policy=None,
        retrieval_policy={"min_score": None},
    )
    overlay = load_role("child", [tmp_path]).overlay
    assert overlay.label == ""
    assert overlay.source_policy.domain_boosts == {"code": 3}
    assert overlay.synthesis_policy.citation_style == "inline"
    assert overlay.retrieval_policy.min_score == 0.1


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"source_polcy": None}, "source_polcy"),
        ({"source_policy": {"forbiden_sources": None}}, "source_policy.forbiden_sources"),
        ({"source_policy": {"domain_boosts": {"lwa": None}}}, "source_policy.domain_boosts.lwa"),
    ],
)
def test_a_null_that_removes_nothing_is_a_slip(
    tmp_path: Path, keys: Mapping[str, object], place: str
) -> None:
    write(tmp_path, "base", source_policy={"domain_boosts": {"law": 2}})
    path = write(tmp_path, "child", extends="base", **keys)
    assert [problem.place for problem in problems_of(path, [])] == [place]


@pytest.mark.parametrize("key", ["version", "role_id"])
def test_a_child_says_itself_which_overlay_it_is(tmp_path: Path, key: str) -> None:
    write(tmp_path, "base")
    path = tmp_path / "child.json"
    values = {"version": "1.0", "role_id": "child", "extends": "base"}
    for left_out in ({k: v for k, v in values.items() if k != key}, {**values, key: None}):
        path.write_text(json.dumps(left_out), encoding="utf-8")
        assert [(p.place, p.code) for p in problems_of(path, [])] == [(key, "missing_key")]


def test_a_file_extends_what_lies_beside_it_before_the_folders(tmp_path: Path) -> None:
    folder = tmp_path / "overlays"
    folder.mkdir()
    write(folder, "base", label="folder")
    path = write(tmp_path, "child", name="draft", extends="base")
    assert load_file(path, [folder]).overlay.label == "folder"
    write(tmp_path, "base", label="beside")
    assert load_file(path, [folder]).overlay.label == "beside"


def test_a_file_that_a_role_finds_resolves_as_the_role_does(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    write(near, "base", label="near")
    write(far, "base", label="far")
    path = write(far, "child", extends="base")
    for found in (load_file(path, [near, far]), load_role("child", [near, far])):
        assert found.overlay.label == "near"
        assert found.ancestors == (near / "base.json",)


def test_a_file_may_extend_the_role_that_it_replaces(tmp_path: Path) -> None:
    path = write(tmp_path, "docs-writer", name="mine", extends="docs-writer", label="Mine")
    found = load_file(path, overlay_folders())
    assert found.overlay.label == "Mine"
    assert found.overlay.mission == load_role("docs-writer", overlay_folders()).overlay.mission


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    error = refused("overlay_missing", write(tmp_path, "a", extends="base"))
    assert "extends: the role 'base' has no overlay" in error.message


def test_a_malformed_parent_is_refused_by_its_own_name(tmp_path: Path) -> None:
    base = write(tmp_path, "base", label=1)
    path = write(tmp_path, "a", extends="base", label="a child cannot mend it")
    assert str(base) in refused("overlay_malformed", path).message
    assert [problem.place for problem in problems_of(path, [])] == ["extends"]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle_is_refused_and_drawn(tmp_path: Path, length: int) -> None:
    names = "abc"[:length]
    for name, parent in zip(names, names[1:] + names[0], strict=True):
        write(tmp_path, name, extends=parent)
    with pytest.raises(OverlayError) as caught:
        load_role("a", [tmp_path])
    assert caught.value.code == "overlay_cycle"
    assert " → ".join(names + "a") in caught.value.message


def test_a_circle_further_up_is_drawn_alone(tmp_path: Path) -> None:
    write(tmp_path, "a", extends="b")
    write(tmp_path, "b", extends="c")
    write(tmp_path, "c", extends="b")
    with pytest.raises(OverlayError, match="goes in a circle: b → c → b"):
        load_role("a", [tmp_path])


def test_a_chain_has_a_limit(tmp_path: Path) -> None:
    write(tmp_path, "r0", label="root")
    for n in range(1, MAX_PARENTS + 2):
        write(tmp_path, f"r{n}", extends=f"r{n - 1}")
    longest = load_role(f"r{MAX_PARENTS}", [tmp_path])
    assert longest.overlay.label == "root"
    assert [path.stem for path in longest.ancestors] == [f"r{n}" for n in range(7, -1, -1)]
    with pytest.raises(OverlayError) as caught:
        load_role(f"r{MAX_PARENTS + 1}", [tmp_path])
    assert caught.value.code == "overlay_chain_too_long"


# Folders and the list


def test_the_shipped_folder_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = data_folder("overlays")
    assert overlay_folders() == (shipped,)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    monkeypatch.setenv(ENVIRONMENT, f"{one}{os.pathsep}{os.pathsep}{two}")
    assert overlay_folders() == (one, two, shipped)
    assert overlay_folders([two]) == (two, shipped)


def test_a_folder_that_is_named_has_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for missing in (tmp_path / "none", write(tmp_path, "a"), Path("~nobody-of-this-name/x")):
        with pytest.raises(OverlayError) as caught:
            overlay_folders([missing])
        assert caught.value.code == "overlay_folder_missing"
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "none"))
    with pytest.raises(OverlayError, match=ENVIRONMENT):
        overlay_folders()


def test_the_list_is_by_role_and_shows_what_is_malformed(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    write(near, "b", label="B", mission="Be.", extends="a")
    write(far, "a", label="A")
    write(far, "b", label="hidden")
    write(far, "d", name="c")
    write(near, "Bad")
    (far / "x.json").write_text("{", encoding="utf-8")
    (far / ".hidden.json").write_text("{", encoding="utf-8")
    (far / "notes.txt").write_text("", encoding="utf-8")
    entries = list_overlays([near, far, tmp_path / "gone"])
    assert [entry.role_id for entry in entries] == ["Bad", "a", "b", "c", "x"]
    problems = {entry.role_id: entry.problem for entry in entries}
    assert (problems["a"], problems["b"]) == ("", "")
    assert "not a role id" in problems["Bad"]
    assert "the file is called 'c.json'" in problems["c"]
    assert "is not JSON" in problems["x"]
    b = entries[2]
    assert (b.label, b.mission, b.extends, b.path) == ("B", "Be.", "a", near / "b.json")


# Properties

# st.text() leaves lone surrogates out, and JSON can spell them.
ROLE_KEYS = [field.name for field in fields(Overlay)]
wild_text = st.text(st.characters(), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | wild_text
names = st.sampled_from([*ROLE_KEYS, "pattern", "boost", "lexical_weight"]) | wild_text
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
)
objects = st.dictionaries(names, anything, max_size=6)
near_misses = objects.map(lambda keys: {"version": "1.0", "role_id": "a", **keys})


def loads_or_is_refused(path: Path) -> None:
    try:
        assert isinstance(load_file(path, []), ResolvedOverlay)
        assert problems_of(path, []) == []
    except OverlayError as error:
        assert str(error).encode("utf-8")
        assert problems_of(path, [])


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b'{"a":' * 10_000)
def test_any_bytes_give_an_overlay_or_an_overlay_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    loads_or_is_refused(path)


@given(anything | objects | near_misses, st.booleans())
def test_any_json_gives_an_overlay_or_an_overlay_error(
    tmp_path: Path, value: object, escaped: bool
) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(value, ensure_ascii=escaped)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    loads_or_is_refused(path)


phrases = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(str.strip), max_size=3)  # fmt: skip
boosts = st.floats(0.1, 100)
overlays = st.fixed_dictionaries(
    {"version": st.just("1.0"), "role_id": st.just("a")},
    optional={
        "label": st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
        "anti_goals": st.lists(st.sampled_from(["x", "y", ""])),
        "vocabulary": st.fixed_dictionaries(
            {}, optional={"boost_phrases": phrases, "synonyms": st.dictionaries(st.sampled_from("pqr"), phrases)}
        ),
        "source_policy": st.fixed_dictionaries(
            {},
            optional={
                "domain_boosts": st.dictionaries(st.sampled_from("def"), boosts),
                "forbidden_sources": st.lists(st.fixed_dictionaries({"pattern": st.sampled_from("mno")}, optional={"boost": st.none() | boosts}), max_size=2),
            },
        ),
        "retrieval_policy": st.fixed_dictionaries(
            {},
            optional={
                "min_score": st.floats(0, 2),
                "freshness_max_age_days": st.none() | st.floats(1, 900),
                "require_source_diversity": st.booleans(),
            },
        ),
    },
)  # fmt: skip


def shuffled(value: object, data: st.DataObject) -> object:
    if isinstance(value, dict):
        keys = data.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], data) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, data) for item in value]
    return value


@given(overlays, st.data())
def test_the_digest_knows_no_layout(
    tmp_path: Path, values: dict[str, object], data: st.DataObject
) -> None:
    plain, other = tmp_path / "plain.json", tmp_path / "other.json"
    plain.write_text(json.dumps(values), encoding="utf-8")
    indent = data.draw(st.sampled_from([None, 1, "\t"]))
    other.write_text(
        json.dumps(shuffled(values, data), indent=indent, ensure_ascii=False), encoding="utf-8"
    )
    assert load_file(plain, []).digest == load_file(other, []).digest


def test_the_digest_makes_defaults_explicit(tmp_path: Path) -> None:
    short = write(tmp_path, "a", name="short")
    long = write(tmp_path, "a", name="long", label="", retrieval_policy={"max_selected_chunks": 10})
    assert load_file(short, []).digest == load_file(long, []).digest


@given(overlays, overlays)
def test_the_digest_is_equal_for_equal_overlays_only(
    one: dict[str, object], two: dict[str, object]
) -> None:
    first, second = validate(one), validate(two)
    assert isinstance(first, Overlay)
    assert isinstance(second, Overlay)
    assert (digest_of(first) == digest_of(second)) == (first == second)


def changed(value: object) -> list[object]:
    """The value with each of its leaves changed in turn, so far as the model allows it."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 0.001 if isinstance(value, float) else value + 1]
    if isinstance(value, str):
        return [value + "x"]
    if isinstance(value, list):
        inside = [
            [*value[:n], new, *value[n + 1 :]] for n, v in enumerate(value) for new in changed(v)
        ]
        return [*inside, *([list(reversed(value))] if value != value[::-1] else []), value[:-1]]  # fmt: skip
    if isinstance(value, dict):
        return [{**value, key: new} for key, v in value.items() for new in changed(v)]
    return []


def test_the_digest_changes_with_any_value() -> None:
    overlay = load_role(SHIPPED[0], overlay_folders()).overlay
    values = overlay.model_dump()
    results = [validate(new) for new in changed(values) if isinstance(new, dict)]
    valid = [result for result in results if isinstance(result, Overlay) and result != overlay]
    # Only the closed vocabularies have no neighbour that is valid.
    assert len(results) - len(valid) <= 5
    assert len(valid) > 100
    assert digest_of(overlay) not in {digest_of(other) for other in valid}


@given(overlays, overlays)
def test_merge_the_child_wins_and_the_rest_is_the_parents(
    parent: dict[str, object], child: dict[str, object]
) -> None:
    merged = merge(parent, child)
    assert follows(merged, parent, child, own=("role_id", "version", "extends"))


def follows(merged: object, parent: object, child: object, own: tuple[str, ...] = ()) -> bool:
    if not isinstance(child, dict):
        return merged == child
    assert isinstance(merged, dict)
    below = parent if isinstance(parent, dict) else {}
    kept = {key: value for key, value in below.items() if key not in child and key not in own}
    return (
        all(merged[key] == value for key, value in kept.items())
        and all(
            key not in merged if value is None else follows(merged[key], below.get(key), value)
            for key, value in child.items()
        )
        and merged.keys() <= kept.keys() | child.keys()
    )


@given(overlays)
def test_a_child_that_says_nothing_is_its_parent(tmp_path: Path, values: dict[str, object]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(values), encoding="utf-8")
    child = load_file(write(tmp_path, "b", extends="a"), []).overlay
    parent = load_role("a", [tmp_path]).overlay
    own = {"role_id": "b", "extends": "a"}
    assert child.model_dump() == {**parent.model_dump(), **own}
