"""Overlay files: which are found, what they inherit, and which exactly was used."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rolebundle.errors import OverlayError
from rolebundle.policy.overlays import (
    ENVIRONMENT,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
    problems_of,
)
from rolebundle.resources import data_folder
from support.overlay_files import refused, write

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
    monkeypatch.delenv(ENVIRONMENT)
    assert overlay_folders() == (shipped,)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv(ENVIRONMENT, f"{first}{os.pathsep}{os.pathsep}{second}")
    assert overlay_folders() == (first, second, shipped)
    assert overlay_folders([second]) == (second, shipped)


def test_a_corpus_has_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT)
    shipped, named, corpus = data_folder("overlays"), tmp_path / "named", tmp_path / "team.db"
    own = tmp_path / "team.db.overlays"
    assert overlay_folders(corpus=corpus) == (shipped,)
    named.mkdir()
    own.mkdir(mode=0o755)
    assert overlay_folders([named], corpus) == (named, own, shipped)
    (tmp_path / "link.db").symlink_to(corpus)
    assert overlay_folders(corpus=tmp_path / "link.db") == (own, shipped)


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
    monkeypatch.setattr("rolebundle.policy.overlays._ROOT_USER", -1)
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
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "none"))
    with pytest.raises(OverlayError, match=ENVIRONMENT):
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
