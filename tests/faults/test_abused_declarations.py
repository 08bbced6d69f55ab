"""Rows 27 and 28: overlays, front matter and manifests written to break what reads them."""

import time
from pathlib import Path

import pytest

from rolebundle.text.paths import matches
from support.commands import invoke, is_coded
from support.corpora import build, document

SOUND = '{"version": "1.0", "role_id": "r", "mission": "Review."'
DEEP = "[" * 100_000

OVERLAYS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "JSON"),
    "YAML tags": (b"!!python/object/apply:os.system ['true']", "JSON"),
    "binary": (bytes(range(256)), ""),
    "a duplicate key": (f'{SOUND}, "role_id": "s"}}'.encode(), "role_id"),
    "an unknown key": (f'{SOUND}, "misson": ""}}'.encode(), "misson"),
    "a whole number of 5,000 digits": (
        f'{SOUND}, "retrieval_policy": {{"max_selected_chunks": {"9" * 5000}}}}}'.encode(),
        "",
    ),
    "weights that do not sum to 1": (
        f'{SOUND}, "retrieval_policy": {{"lexical_weight": 0.9, "semantic_weight": 0.9}}}}'.encode(),
        "weight",
    ),
    "nested to death": (f'{SOUND}, "vocabulary": {DEEP}}}'.encode(), ""),
    "a parent that is not there": (f'{SOUND}, "extends": "nobody"}}'.encode(), "extends"),
    "itself as parent": (f'{SOUND}, "extends": "r"}}'.encode(), "circle"),
    "larger than the cap": (f'{SOUND}, "label": "{"x" * 3_000_000}"}}'.encode(), ""),
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("abused")
    return build(folder, [document("d0", ["the token"])], name="abused.db")


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", OVERLAYS)
def test_a_malformed_overlay_never_retrieves(db: Path, tmp_path: Path, case: str) -> None:
    data, named = OVERLAYS[case]
    path = tmp_path / "r.json"
    path.write_bytes(data)
    common = ("retrieve", "token", "--lexical-only", "--db", db)
    started = time.process_time()
    outcome = invoke(*common, "--role", "r", "--overlay-dir", tmp_path)
    assert time.process_time() - started < 5
    assert (outcome.code, outcome.out) == (3, ""), outcome
    assert str(path) in outcome.err, "the place is named"
    assert named in outcome.err
    assert "next:" in outcome.err
    is_coded(outcome)
    assert len(outcome.err) < 4000


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 12 + "b", "a" * 250),
        ("**/" * 12 + "z", "/".join("a" * 60)),
        ("**/a/" * 8 + "z", "/".join("a" * 200)),
        ("**a" * 10 + "b", "a" * 1000),
        ("*a" * 5 + "/**/" + "*a" * 5 + "b", ("a" * 100 + "/") * 20 + "a"),
        ("?" * 200 + "*" * 50 + "b", "a" * 1000),
        ("***/" * 30 + "x", "a/" * 300),
    ],
)
def test_no_glob_runs_away(glob: str, path: str) -> None:
    started = time.process_time()
    assert not matches(glob, path)
    assert time.process_time() - started < 1
