"""Overlay files: which are found, what they inherit, and which exactly was used."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import WEIGHTS
from rolebundle.errors import OverlayError
from rolebundle.policy.overlays import (
    OVERLAYS_VARIABLE,
    ResolvedOverlay,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
    problems_of,
)
from rolebundle.policy.policy_file import MAX_BYTES
from rolebundle.resources import data_folder
from rolebundle.system import IS_UNIX
from support.overlay_files import write


def refused(code: str, path: Path) -> OverlayError:
    with pytest.raises(OverlayError) as caught:
        load_file(path, [])
    assert caught.value.code == code
    assert caught.value.exit_code == 3
    assert caught.value.hint
    return caught.value


REFERENCE = (
    "competitive-analyst",
    "critic-reviewer",
    "docs-architect",
    "product-strategist",
    "security-reviewer",
)


# What loads


@pytest.mark.parametrize("role_id", REFERENCE)
def test_the_references_overlays_load_unmodified(shared: Path, role_id: str) -> None:
    folder = shared / "compat" / "knowledge-core" / "roles"
    found = load_role(role_id, [folder])
    written = json.loads((folder / f"{role_id}.json").read_text(encoding="utf-8"))
    assert holds(found.overlay.model_dump(), written)


def holds(document: object, part: object) -> bool:
    if isinstance(document, dict) and isinstance(part, dict):
        return all(key in document and holds(document[key], part[key]) for key in part)
    if isinstance(document, list) and isinstance(part, list):
        return len(document) == len(part) and all(map(holds, document, part))
    return document == part


def two_folders(folder: Path) -> tuple[Path, Path]:
    near, far = folder / "near", folder / "far"
    near.mkdir()
    far.mkdir()
    return near, far


def test_the_first_folder_wins(tmp_path: Path) -> None:
    near, far = two_folders(tmp_path)
    write(near, "a", label="near")
    write(far, "a", label="far")
    assert load_role("a", [near, far]).overlay.label == "near"
    assert load_role("a", [far, near]).overlay.label == "far"


def test_a_malformed_file_in_the_first_folder_is_not_passed_over(tmp_path: Path) -> None:
    near, far = two_folders(tmp_path)
    write(far, "a")
    (near / "a.json").symlink_to(near / "gone.json")
    with pytest.raises(OverlayError, match="there is no such overlay file"):
        load_role("a", [near, far])


# What does not


def test_a_missing_role_names_the_folders_and_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "mossline-security-reviewer")
    with pytest.raises(OverlayError) as caught:
        load_role("securty-reviewer", [tmp_path])
    assert caught.value.code == "overlay_missing"
    assert str(tmp_path) in caught.value.message
    assert "did you mean mossline-security-reviewer?" in caught.value.message


@pytest.mark.parametrize(
    "role_id",
    ["../secret", "", ".", "..", "a/b", "a\\b", "A", "a\n", "a\x00", "-a", "é", "a" * 65, "/etc/a"],
)
def test_a_role_id_never_leaves_the_folder(tmp_path: Path, role_id: str) -> None:
    folder = tmp_path / "overlays"
    folder.mkdir()
    write(tmp_path, "secret")
    for find in (load_role, locate):
        with pytest.raises(OverlayError, match=r"\[bad_role_id\]"):
            find(role_id, [folder])


def test_a_role_has_to_be_called_like_its_file(tmp_path: Path) -> None:
    write(tmp_path, "b", name="a")
    with pytest.raises(OverlayError, match=r"\[overlay_name_mismatch\]"):
        load_role("a", [tmp_path])


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


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle_is_refused_and_drawn(tmp_path: Path, length: int) -> None:
    names = "abc"[:length]
    for name, parent in zip(names, names[1:] + names[0], strict=True):
        write(tmp_path, name, extends=parent)
    with pytest.raises(OverlayError) as caught:
        load_role("a", [tmp_path])
    assert caught.value.code == "overlay_cycle"
    assert " → ".join(names + "a") in caught.value.message


# Folders and the list


def test_the_shipped_folder_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = data_folder("overlays")
    monkeypatch.delenv(OVERLAYS_VARIABLE)
    assert overlay_folders() == (shipped,)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv(OVERLAYS_VARIABLE, f"{first}{os.pathsep}{os.pathsep}{second}")
    assert overlay_folders() == (first, second, shipped)
    assert overlay_folders([second]) == (second, shipped)


def test_a_corpus_has_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OVERLAYS_VARIABLE)
    shipped, named, corpus = data_folder("overlays"), tmp_path / "named", tmp_path / "team.db"
    own = tmp_path / "team.db.overlays"
    assert overlay_folders(corpus=corpus) == (shipped,)
    named.mkdir()
    own.mkdir(mode=0o755)
    assert overlay_folders([named], corpus) == (named, own, shipped)
    (tmp_path / "link.db").symlink_to(corpus)
    assert overlay_folders(corpus=tmp_path / "link.db") == (own, shipped)


@pytest.mark.skipif(not IS_UNIX, reason="needs permissions of files")
def test_another_users_folder_beside_a_corpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "team.db.overlays"
    own.mkdir()
    own.chmod(0o777)
    with pytest.raises(OverlayError, match="every user may write to it") as caught:
        overlay_folders(corpus=tmp_path / "team.db")
    assert caught.value.code == "overlay_folder_foreign"
    own.chmod(0o700)
    monkeypatch.setattr("rolebundle.system.ROOT_USER", -1)
    monkeypatch.setattr(os, "geteuid", lambda: own.stat().st_uid + 1)
    with pytest.raises(OverlayError, match="it belongs to uid"):
        overlay_folders(corpus=tmp_path / "team.db")
    own.rmdir()
    own.touch()
    with pytest.raises(OverlayError, match="is not a folder"):
        overlay_folders(corpus=tmp_path / "team.db")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_another_users_link_beside_a_corpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    link = tmp_path / "team.db.overlays"
    link.symlink_to("mine")
    assert link in overlay_folders(corpus=tmp_path / "team.db")
    os.lchown(link, 65_534, 65_534)
    with pytest.raises(OverlayError, match="it belongs to uid 65534"):
        overlay_folders(corpus=tmp_path / "team.db")


def test_a_folder_that_is_named_has_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for missing in (tmp_path / "none", write(tmp_path, "a"), Path("~nobody-of-this-name/x")):
        with pytest.raises(OverlayError, match=r"\[overlay_folder_missing\]"):
            overlay_folders([missing])
    monkeypatch.setenv(OVERLAYS_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(OverlayError, match=OVERLAYS_VARIABLE):
        overlay_folders()


def test_the_list_is_by_role_and_shows_what_is_malformed(tmp_path: Path) -> None:
    near, far = two_folders(tmp_path)
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
    assert (b.label, b.mission, b.extends, b.path) == ("B", "Be.", "a", str(near / "b.json"))


# Properties


# -- the digest: what an overlay means, not how it is written --------------------------------------


def test_the_digest_makes_defaults_explicit(tmp_path: Path) -> None:
    short = write(tmp_path, "a", name="short")
    long = write(tmp_path, "a", name="long", label="", retrieval_policy={"max_selected_chunks": 10})
    assert load_file(short, []).digest == load_file(long, []).digest


@pytest.mark.parametrize(
    "change",
    [
        {"mission": "Write."},
        {"vocabulary": {"boost_phrases": ["two", "one"]}},
        {"source_policy": {"domain_boosts": {"law": 2.001}}},
        {"source_policy": {"forbidden_sources": [{"path": "a/**"}]}},
        {"retrieval_policy": {"diversity": "hard"}},
        {"retrieval_policy": {"evidence": "required"}},
    ],
)
def test_the_digest_changes_with_any_value(tmp_path: Path, change: dict[str, object]) -> None:
    values = {
        "mission": "Read.",
        "vocabulary": {"boost_phrases": ["one", "two"]},
        "source_policy": {"domain_boosts": {"law": 2}, "forbidden_sources": [{"pattern": "a"}]},
    }
    digests = {
        load_file(write(tmp_path, "a", **each), []).digest for each in (values, values | change)
    }
    assert len(digests) == 2


# -- weights that a file leaves out share what the given ones leave of 1 ---------------------------


DEFAULTS = {
    "lexical_weight": 0.36,
    "semantic_weight": 0.24,
    "metadata_weight": 0.2,
    "rerank_weight": 0.2,
}


def weights_of(resolved: ResolvedOverlay) -> list[float]:
    return [getattr(resolved.overlay.retrieval_policy, name) for name in WEIGHTS]


def loaded(folder: Path, **policy: float | None) -> ResolvedOverlay:
    return load_file(write(folder, "a", retrieval_policy=policy), [folder])


@pytest.mark.parametrize(
    "own_weights",
    [
        {},
        {"lexical_weight": 0.4, "semantic_weight": 0.2},
        {"lexical_weight": 0.365},
        {**DEFAULTS, "lexical_weight": 0.369},
    ],
)
def test_weights_that_sum_to_one_stay_as_they_are(
    tmp_path: Path, own_weights: dict[str, float]
) -> None:
    found = loaded(tmp_path, **own_weights)
    assert weights_of(found) == [*(DEFAULTS | own_weights).values()]


@pytest.mark.parametrize(
    ("own_weights", "reason"),
    [
        ({**DEFAULTS, "lexical_weight": 0.5}, "must be 1 ± 0.01, and is 1.14"),
        ({"lexical_weight": 0.9, "semantic_weight": 0.2}, "must be 1 ± 0.01, and is 1.5"),
        ({"lexical_weight": 0.1, "semantic_weight": 0.0}, None),
    ],
)
def test_what_cannot_be_shared_is_an_error(
    tmp_path: Path, own_weights: dict[str, float], reason: str | None
) -> None:
    path = write(tmp_path, "a", retrieval_policy=own_weights)
    if reason is None:
        load_file(path, [])
    else:
        assert reason in refused("overlay_malformed", path).message


def test_weights_of_zero_cannot_take_the_rest(tmp_path: Path) -> None:
    write(tmp_path, "base", retrieval_policy=dict(zip(WEIGHTS, (1, 0, 0, 0), strict=True)))
    child = write(tmp_path, "child", extends="base", retrieval_policy={"lexical_weight": 0.8})
    assert "must be 1 ± 0.01, and is 0.8" in refused("overlay_malformed", child).message


def test_a_child_keeps_its_own_weights_and_rescales_those_of_its_parents(tmp_path: Path) -> None:
    write(tmp_path, "base", retrieval_policy={"lexical_weight": 0.56, "rerank_weight": 0.0})
    base = load_file(tmp_path / "base.json", [tmp_path])
    assert weights_of(base) == [0.56, 0.24, 0.2, 0]
    child = write(tmp_path, "child", extends="base", retrieval_policy={"semantic_weight": 0.62})
    assert weights_of(load_file(child, [tmp_path])) == [0.28, 0.62, 0.1, 0]


# -- what a file may contain -----------------------------------------------------------------------


MINIMAL = '"version": "1.0", "role_id": "a"'


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "is not JSON"),
        ('{"version": "1.0",\n "role_id": }', "line 2, column 13", "is not JSON"),
        ("[]", "", "must be one JSON object"),
        (f'{{{MINIMAL}, "role_id": "b"}}', "line 1, column 36", "the key 'role_id' occurs twice"),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": NaN}}}}',
            "line 1, column 70",
            "NaN is not a JSON number",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": 1e999}}}}',
            "line 1, column 70",
            "out of range",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"max_selected_chunks": {"9" * 5000}}}}}',
            "line 1, column 80",
            "more than 400 digits",
        ),
        (f'{{{MINIMAL}, "anti_goals": ["\\ud800"]}}', "anti_goals[0]", "an unpaired surrogate"),
        (f'{{{MINIMAL}, "mission": "a\\u0000b"}}', "mission", r"\u0000"),
        ("[" * 100_000, "line 1, column 101", "nested more than 100 levels deep"),
        (
            f'{{{MINIMAL}, "retrieval_polcy": {{}}}}',
            "retrieval_polcy",
            "unknown key; did you mean retrieval_policy?",
        ),
        (f'{{{MINIMAL}, "vocabulary": {{"boost_phrases": ["x", 1]}}}}', "vocabulary.boost_phrases[1]", "(it is 1)"),
        (f'{{{MINIMAL}, "extends": "../a"}}', "extends", "must match"),
        ('{"role_id": "a"}', "version", "is missing"),
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


# Any content whatever


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
