"""An engine that stays open notices changes of its corpus file, also if the file is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.storage.files import sqlite_file
from rolebundle.storage.opening import open_reader
from support.corpora import build, document, remove


def selected_documents(engine: Engine) -> list[str]:
    engine.refresh()
    bundle = engine.retrieve(RetrievalRequest(task="token", lexical_only=True))
    return sorted(passage.document_id for passage in bundle.selected)


def test_a_replaced_file_is_opened_again(tmp_path: Path) -> None:
    db = build(tmp_path, [document("old", ["a token"])])
    with Engine(db) as engine:
        assert selected_documents(engine) == ["old"]
        before = engine.workspace.corpus
        assert selected_documents(engine) == ["old"]
        assert engine.workspace.corpus is before, "one that is still there stays open"
        replacement = build(tmp_path, [document("new", ["a token"])])
        for suffix in ("-wal", "-shm"):
            Path(f"{db}{suffix}").unlink(missing_ok=True)
        replacement.replace(db)
        assert selected_documents(engine) == ["new"]
        remove(db)
        with pytest.raises(UsageError, match="no corpus"):
            selected_documents(engine)


def test_a_file_opened_as_unchanging_is_opened_again_if_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = build(tmp_path, [document("old", ["a token"])])
    monkeypatch.setattr(
        sqlite_file,
        "_connect_read_only",
        lambda path: (sqlite_file._connect(f"file:{path}?immutable=1"), True),
    )
    with open_reader(db) as corpus:
        assert corpus.is_current()
        build(tmp_path, [document("new", ["a token"])], name=db.name, base=db.read_bytes())
        assert not corpus.is_current()


def test_interrupting_a_closed_engine_has_no_effect(tmp_path: Path) -> None:
    engine = Engine(build(tmp_path, [document("old", ["a token"])]))
    engine.interrupt()
    assert selected_documents(engine) == ["old"]
    engine.interrupt()
    engine.close()
    engine.interrupt()
    assert selected_documents(engine) == ["old"]
