"""The client: it starts the sidecar, asks it, and always ends it."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rolebundle.interfaces.client import Sidecar, SidecarError
from support.commands import forked_program
from support.corpora import build, document
from support.program_server import MAIN, forked_python
from support.served import SLOW


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [document("auth", ["the token refresh flow", "tokens expire"])]
    return build(tmp_path_factory.mktemp("client"), documents)


@pytest.fixture(scope="module")
def sidecar(db: Path) -> Iterator[Sidecar]:
    with Sidecar(db, command=forked_program()) as client:
        yield client


def test_the_methods(sidecar: Sidecar) -> None:
    bundle = sidecar.retrieve(
        "token refresh", role="mossline-security-reviewer", limit=1, detail="ids"
    )
    [chosen] = bundle["selected"]
    assert sidecar.get(chosen["chunk_id"])
    assert sidecar.why("token refresh", chosen["chunk_id"])
    assert sidecar.call("initialize")["name"] == "rolebundle"


def test_errors_have_all_their_parts(sidecar: Sidecar) -> None:
    with pytest.raises(SidecarError) as caught:
        sidecar.retrieve("token", limti=3)
    error = caught.value
    assert (error.code, error.rpc_code, error.retryable) == ("bad_request", -32602, False)
    assert "limti" in error.message
    assert error.hint
    assert "bad_request" in str(error)
    restored = pickle.loads(pickle.dumps(error))
    assert vars(restored) == vars(error)
    with pytest.raises(SidecarError) as caught:
        sidecar.call("retreive")
    assert caught.value.rpc_code == -32601


def test_calls_from_many_threads(sidecar: Sidecar) -> None:
    with ThreadPoolExecutor(8) as pool:
        tasks = [f"token {n}" for n in range(40)]
        bundles = list(pool.map(sidecar.retrieve, tasks))
    assert [bundle["query"]["task_text"] for bundle in bundles] == tasks


def test_a_call_that_takes_too_long(db: Path) -> None:
    command = (*forked_python(), SLOW.format(seconds=0.3) + MAIN)
    with Sidecar(db, timeout=0.1, command=command) as slow:
        slow._timeout = 30
        assert slow.retrieve("token", lexical_only=True)
        slow._timeout = 0.1
        with pytest.raises(SidecarError) as caught:
            slow.call("status")
        assert (caught.value.code, caught.value.retryable) == ("timeout", True)
        slow._timeout = 30
        assert slow.retrieve("token", lexical_only=True)["selected"]


def test_ingest(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\na token\n", encoding="utf-8")
    program = forked_program()
    with Sidecar(tmp_path / "new.db", allow_write=True, command=program) as client:
        client.ingest(tmp_path / "a.md", lexical_only=True)
        assert client.call("status")["corpus"]["documents"] == 1
    reading = Sidecar(tmp_path / "new.db", command=program)
    with reading as reader, pytest.raises(SidecarError) as caught:
        reader.ingest(tmp_path / "a.md")
    assert caught.value.code == "read_only_server"


def test_one_that_dies_before_it_answers(db: Path) -> None:
    command = (sys.executable, "-c", "import sys; sys.stdin.readline()")
    with Sidecar(db, command=command) as client, pytest.raises(SidecarError) as caught:
        client.call("status")
    assert caught.value.code == "sidecar_gone"


def test_a_command_that_is_not_there(db: Path) -> None:
    with pytest.raises(SidecarError, match=r"\[sidecar_not_started\]"):
        Sidecar(db, command=["/no/such/program"]).start()


def test_importing_it_takes_nothing_else_of_the_project() -> None:
    script = (
        "import sys, rolebundle.interfaces.client; "
        "print([name for name in sys.modules if name.startswith('rolebundle.')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    assert result.stdout.strip() == "['rolebundle.interfaces', 'rolebundle.interfaces.client']"
