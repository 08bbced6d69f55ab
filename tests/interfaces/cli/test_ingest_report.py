"""What `ingest` reports: what is added, skipped, refused, and trusted."""

from pathlib import Path

from support.commands import invoke


def test_ingest_says_that_nothing_is_trusted(tmp_path: Path) -> None:
    notes, db = tmp_path / "notes", tmp_path / "c.db"
    notes.mkdir()
    (notes / "a.md").write_text("a token", encoding="utf-8")
    ingest = ("ingest", notes, "--lexical-only", "--db", db)
    assert "so the trust of answers is undeclared" in invoke(*ingest).out
    assert "is undeclared" not in invoke(*ingest).out
    (notes / "b.md").write_text("---\ntrust_tier: preferred\n---\na plan\n", encoding="utf-8")
    assert "is undeclared" not in invoke(*ingest).out
    assert invoke(*ingest, "--json").json()["trusted"] == 1


def test_ingest_reports(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    (tmp_path / "notes" / "b.xyz").write_bytes(bytes(range(256)))
    common = ("ingest", tmp_path / "notes", "--lexical-only", "--db", tmp_path / "c.db")
    first = invoke(*common)
    assert first.code == 0
    assert "1 added" in first.out
    assert "1 skipped (1 binary)" in first.out
    assert "skipped [binary] b.xyz: binary data" in first.err
    second_outcome = invoke(*common, "--json")
    assert second_outcome.err == ""
    report = second_outcome.json()
    assert (report["added"], report["unchanged"]) == (0, 1)
    assert report["skipped"] == [
        {"path": "b.xyz", "code": "binary", "message": report["skipped"][0]["message"]}
    ]


def test_what_is_skipped_is_grouped(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "node_modules").mkdir(parents=True)
    for number in range(5):
        (notes / f"{number}.xyz").write_bytes(bytes(range(256)))
        (notes / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
        (notes / f".{number}").touch()
    (notes / "line\nbreak.xyzw").write_bytes(bytes(range(256)))
    common = ("ingest", notes, "--lexical-only", "--db", tmp_path / "c.db")
    grouped = invoke(*common).err.splitlines()
    assert grouped == [
        "skipped [ignored] 5 × hidden file: .0, .1, .2 and 2 more",
        "skipped [ignored] node_modules/: dependencies",
        "skipped [unsupported] 5 × png: image: 0.png, 1.png, 2.png and 2 more",
        "skipped [binary] 6 × binary data, not text; exclude the file: 0.xyz, 1.xyz, 2.xyz and 3 more",
    ]
    every = invoke(*common, "--json").json()["skipped"]
    assert len(every) == 17
    assert {"path": ".3", "code": "ignored", "message": "hidden file"} in every
