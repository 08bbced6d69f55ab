"""The sidecar: its methods, their order, and the corpus that changes under it."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rolebundle.interfaces.json_lines import MAX_LINE_BYTES
from support.commands import invoke
from support.corpora import build, document
from support.served import RUNAWAY, SLOW, Served, alive, codes, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")


# -- the methods -------------------------------------------------------------------------------


def test_initialize(shared_server: Served) -> None:
    result = shared_server.ask("initialize", client="a test")["result"]
    assert result["name"] == "rolebundle"
    assert result["protocol"] == "1.0"
    assert result["capabilities"]["allow_write"] is False
    assert "ingest" not in result["capabilities"]["methods"]
    assert result["capabilities"]["limits"]["line_bytes"] == MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("method", "params", "number", "code"),
    [
        ("retrive", {}, -32601, "unknown_method"),
        ("$/cancelRequest", {"id": 1}, -32601, "unknown_method"),
        ("retrieve", {}, -32602, "bad_request"),
        ("retrieve", {"task": ""}, -32602, "empty_task"),
        ("retrieve", {"task": "x", "limti": 3}, -32602, "bad_request"),
        ("retrieve", {"task": "x", "limit": 0}, -32602, "bad_request"),
        ("retrieve", {"task": "a \ud800 b"}, -32602, "task_not_text"),
        ("retrieve", {"task": "x", "role": "no-such-role"}, -32602, None),
        ("get", {"id": "nothing"}, -32602, None),
        ("get", {"id": "\udcff"}, -32602, None),
        ("status", {"deep": True}, -32602, "bad_request"),
        ("ingest", {"paths": ["/tmp"]}, -32001, "read_only_server"),
    ],
)
def test_refusals(
    shared_server: Served, method: str, params: dict[str, Any], number: int, code: str | None
) -> None:
    error = shared_server.ask(method, **params)["error"]
    assert error["code"] == number, error
    assert set(error["data"]) == {"code", "message", "hint", "retryable"}
    assert error["data"]["message"] == error["message"]
    assert error["data"]["hint"]
    assert code in (None, error["data"]["code"])
    assert "raceback" not in json.dumps(error)
    alive(shared_server)


def test_an_overdue_deadline(small_db: Path) -> None:
    slow = (
        "import time\nimport rolebundle.retrieval.pipeline as e\n_load = e.search\n"
        "def _slow(*a, **k):\n    time.sleep(0.05)\n    return _load(*a, **k)\ne.search = _slow"
    )
    with Served("--db", small_db, before=slow) as server:
        error = server.ask("retrieve", task="token", deadline_ms=10)["error"]
        assert error["data"]["code"] == "interrupted"
        assert error["data"]["retryable"] is True
        alive(server)


# -- order, pipelining, cancelling -------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(shared_server: Served) -> None:
    lines = [request(n, "retrieve", task=f"token {n}", lexical_only=True) for n in range(30)]
    lines[20] = b"nonsense"
    shared_server.send(*lines)
    messages = [shared_server.next() for _ in lines]
    expected: list[Any] = list(range(30))
    expected[20] = -32700
    assert codes(messages) == expected


def test_a_cancelled_request_that_waits_is_answered_so(small_db: Path) -> None:
    with Served("--db", small_db, before=SLOW.format(seconds=0.25)) as server:
        server.request(1, "status")
        server.request(2, "roles.list")
        server.request("2", "roles.list")
        for _ in range(2):
            server.notify("$/cancelRequest", id=2)
        answers = [server.next(), server.next(), server.next()]
        assert codes(answers) == [1, -32800, "2"]
        assert (answers[1]["id"], answers[1]["error"]["data"]["code"]) == (2, "cancelled")
        server.notify("$/cancelRequest", id=2)
        assert server.silent(0.1)


def test_a_cancelled_request_that_runs_is_interrupted(small_db: Path) -> None:
    with Served("--db", small_db, before=RUNAWAY) as server:
        alive(server)
        server.request(1, "status")
        server.request(2, "roles.list")
        assert server.silent(0.15)
        started = time.perf_counter()
        server.notify("$/cancelRequest", id=1)
        answer = server.next()
        assert (answer["id"], answer["error"]["code"]) == (1, -32800)
        assert server.next()["id"] == 2
        assert time.perf_counter() - started < 1
        alive(server)


def test_an_interrupt_hits_only_its_own_request(small_db: Path) -> None:
    with Served("--db", small_db) as server:
        for n in range(20):
            server.request(f"a{n}", "retrieve", task="token", lexical_only=True)
            server.request(f"b{n}", "retrieve", task="token", lexical_only=True)
            server.notify("$/cancelRequest", id=f"a{n}")
        server.request("last", "roles.list")
        answers = {}
        while (message := server.next())["id"] != "last":
            answers[message["id"]] = message
        assert all("result" in answers[f"b{n}"] for n in range(20))
        # One that was done before it was cancelled has its answer.
        others = [answers[f"a{n}"].get("error", {"code": -32800}) for n in range(20)]
        assert {error["code"] for error in others} == {-32800}


# -- the corpus changes under it ---------------------------------------------------------------


def test_a_corpus_that_comes_changes_is_replaced_and_goes(tmp_path: Path) -> None:
    db = tmp_path / "corpus.db"

    def found(server: Served) -> list[str]:
        answer = server.ask("retrieve", task="token", lexical_only=True)
        return sorted(passage["document_id"] for passage in answer["result"]["selected"])

    with Served("--db", db) as server:
        error = server.ask("retrieve", task="token")["error"]
        assert error["data"]["code"] == "corpus_missing"
        build(tmp_path, [document("first", ["a token"])], name="corpus.db")
        assert found(server) == ["first"]
        tree = tmp_path / "tree"
        tree.mkdir()
        (tree / "second.md").write_text("# Second\n\nanother token\n", encoding="utf-8")
        assert invoke("ingest", tree, "--lexical-only", "--db", db).code == 0
        assert len(found(server)) == 2
        build(tmp_path, [document("third", ["the token"])], name="other.db")
        for suffix in ("-wal", "-shm"):
            Path(f"{db}{suffix}").unlink(missing_ok=True)
        (tmp_path / "other.db").replace(db)
        assert found(server) == ["third"]
        db.unlink()
        error = server.ask("retrieve", task="token")["error"]
        assert error["data"]["code"] == "corpus_missing"


def test_ingest_if_it_may_write(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for n in range(30):
        (tree / f"{n}.md").write_text(f"# Number {n}\n\na token\n", encoding="utf-8")
    with Served("--db", tmp_path / "new.db", "--allow-write") as server:
        assert "ingest" in server.ask("initialize")["result"]["capabilities"]["methods"]
        assert server.ask("ingest", paths=["tree"])["error"]["code"] == -32602
        server.request(1, "ingest", paths=[str(tree)], lexical_only=True)
        reply = []
        while "method" in (message := server.next()):
            reply.append(message)
        assert message["id"] == 1
        assert "result" in message, message
        assert reply
        assert reply[-1]["method"] == "$/progress"
        assert set(reply[-1]["params"]) == {"id", "what", "done", "total"}
        alive(server)


def test_an_ingest_that_is_cancelled_keeps_what_was_done(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for n in range(60):
        text = "".join(f"# Number {n}, {m}\n\na token\n\n" for m in range(12))
        (tree / f"{n}.md").write_text(text, encoding="utf-8")
    with Served("--db", tmp_path / "new.db", "--allow-write") as server:
        server.request(1, "ingest", paths=[str(tree)])
        assert server.next()["method"] == "$/progress"
        server.notify("$/cancelRequest", id=1)
        server.request(2, "status")
        while (message := server.next()).get("id") is None:
            pass
        assert (message["id"], message["error"]["code"]) == (1, -32800)
        assert server.next()["id"] == 2
        _, err = server.end_of_input()
        assert err == ""
    assert invoke("ingest", tree, "--lexical-only", "--db", tmp_path / "new.db").code == 0
