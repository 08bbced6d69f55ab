"""Where the corpus lies: options, variables, the default, and unusual names."""

from pathlib import Path

import pytest

from support.commands import invoke


def test_where_the_corpus_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("A.\n", encoding="utf-8")
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only").code == 0
    [default] = (tmp_path / "home").rglob("corpus.db")
    assert invoke("status", "--json").json()["location"] == str(default)
    monkeypatch.setenv("ROLEBUNDLE_DB", str(tmp_path / "named.db"))
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only").code == 0
    assert (tmp_path / "named.db").is_file()
    option = tmp_path / "deep" / "option.db"
    assert invoke("ingest", tmp_path / "a.md", "--lexical-only", "--db", option).code == 0
    assert invoke("status", "--json", "--db", option).json()["location"] == str(option)


@pytest.mark.parametrize("command", ["ls", "get a.md", "grep x", "retrieve x", "verify -"])
def test_who_has_no_corpus_is_told_to_name_a_folder(tmp_path: Path, command: str) -> None:
    outcome = invoke(*command.split(), "--db", tmp_path / "none.db", stdin="A token.")
    assert "next: name a folder with --in FOLDER" in outcome.err


@pytest.mark.parametrize("name", ["", "/tmp/\udcff.db"])
def test_a_corpus_name_that_is_empty_or_no_text(tmp_path: Path, name: str) -> None:
    for command in (("status",), ("ingest", str(tmp_path)), ("corpus", "purge")):
        outcome = invoke(*command, "--db", name)
        assert (outcome.code, "[bad_db_name]" in outcome.err) == (2, True), command


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["with space.db", "ünïcode 数据.db", "a?b#c%20.db", "file:x.db"])
def test_a_corpus_name_that_is_unusual(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("A token.\n", encoding="utf-8")
    for db in (name, str(tmp_path / f"2{name}")):
        assert invoke("ingest", "a.md", "--lexical-only", "--db", db).code == 0
        assert Path(db).is_file()
        assert "a.md" in invoke("retrieve", "token", "--lexical-only", "--db", db).out
        assert invoke("corpus", "doctor", "--db", db).code == 0
