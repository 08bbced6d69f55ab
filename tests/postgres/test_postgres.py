"""A corpus in PostgreSQL: it answers as a file does, and its server enforces who sees what."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Thread
from time import monotonic
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from rolebundle import workspace
from rolebundle.admin import Admin
from rolebundle.admin.purges import finish_pending
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, StorageError, UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.resources import demo_overlays
from rolebundle.storage.address import parameters_of
from rolebundle.storage.opening import open_reader
from rolebundle.storage.postgres import connection, indexes
from rolebundle.storage.writing import open_writer
from support import databases
from support.commands import SAMPLE, Outcome, forked_program, invoke
from support.corpora import set_policy
from support.databases import address, name_in, server


@contextmanager
def counting_round_trips(link: Path) -> Iterator[tuple[Path, Callable[[], int]]]:
    """Another link to a database, and how often a result was waited for over it."""
    socket_name = ".s.PGSQL.5432"
    waited = 0

    def pass_on(source: socket.socket, sink: socket.socket, *, counts: bool) -> None:
        nonlocal waited
        with suppress(OSError):
            while data := source.recv(1 << 20):
                # A result is waited for after a simple query, and after the message Sync.
                if counts:
                    waited += data.startswith(b"Q") + data.count(b"S\0\0\0\4")
                sink.sendall(data)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(f"{server()}/{socket_name}")
                for source, sink in ((client, upstream), (upstream, client)):
                    pump = partial(pass_on, source, sink, counts=source is client)
                    Thread(target=pump, daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener, TemporaryDirectory() as folder:
        listener.bind(f"{folder}/{socket_name}")
        listener.listen()
        Thread(target=accept, args=(listener,), daemon=True).start()
        far = Path(folder) / "far.link"
        far.write_text(f"{address(folder, name_in(link.read_text()))}\n")
        yield far, lambda: waited


ROLES = [None, "mossline-security-reviewer"]
QUESTIONS = [
    "how is a refresh token rotated",
    "which release breaks the export of attachments",
    "what does MOSS-4012 mean",
    '"offline sync" conflict',
    "who approves a change of the public API",
    "zzzz unknown words",
]
POLICY = {
    "agents": {
        "reader": {
            "scopes": ["mossline"],
            "access_level": "internal",
            "deny_patterns": ["security/**"],
            "may_set_time": True,
        },
        "auditor": {"scopes": ["mossline"], "access_level": "confidential", "may_set_time": True},
    }
}
NOW = ("--now", "2026-11-27")
Make = Callable[[], Path]


def connected(link: Path, user: str = "postgres") -> psycopg.Connection[Any]:
    """A connection of a database user, who is made if there is none."""
    name = databases.name_in(link.read_text())
    if user != "postgres":
        with connected(link) as owner:
            known = owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (user,)).fetchone()
            if not known:
                owner.execute(f'CREATE ROLE "{user}" LOGIN'.encode())
    address = databases.address(databases.server(), name, user)
    return psycopg.connect(address, autocommit=True)


def asked(**fields: Any) -> RetrievalRequest:
    """A request at one time, so that answers can be compared."""
    return RetrievalRequest.model_validate({"now": NOW[1], **fields})


def without_names(bundle: Any) -> dict[str, Any]:
    """A bundle without what names its corpus, and without times."""
    values: dict[str, Any] = bundle.model_dump(mode="json")
    for key in ("corpus_id", "generation", "file"):
        values["corpus"].pop(key)
    for key in ("latency_ms", "lexical_ms", "semantic_ms"):
        values["diagnostics"].pop(key)
    return values


# -- the same answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_a_database_answers_as_a_file_does(
    sample: Path, sample_with_vectors: Path, role: str | None
) -> None:
    folders = (demo_overlays(),)
    with Engine(sample, folders) as database, Engine(sample_with_vectors, folders) as file:
        for task in QUESTIONS[ROLES.index(role) :: len(ROLES)]:
            request = asked(task=task, role=role)
            for _ in range(2):  # The second one has the vectors in memory.
                answers = [without_names(engine.retrieve(request)) for engine in (database, file)]
                assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "--json"],
        ["get", "security/threat-model-offline-sync.md", "--json"],
        ["grep", "token", "--json"],
        ["why", "security/threat-model-offline-sync.md", QUESTIONS[0], *NOW, "--json"],
        ["decisions", "list", "--json"],
        ["mark", "list", "--json"],
        ["corpus", "quarantine", "list", "--json"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_answer_as_for_a_file(
    sample: Path, sample_with_vectors: Path, arguments: list[str]
) -> None:
    texts = []
    for db in (sample, sample_with_vectors):
        result = invoke(*arguments, "--db", db)
        values = json.loads(result.out or "{}")
        values.pop("corpus", None)
        texts.append((result.code, values))
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_a_corpus_is_copied_there_and_back(
    tmp_path: Path, sample_with_vectors: Path, database: Make
) -> None:
    link, back = database("template1"), tmp_path / "back.db"
    assert invoke("corpus", "copy", sample_with_vectors, link).code == 0
    assert invoke("corpus", "copy", link, back).code == 0
    for db in (link, back):
        assert invoke("corpus", "doctor", "--db", db).code == 0
    request = asked(task=QUESTIONS[0])
    with Engine(sample_with_vectors) as first, Engine(back) as last:
        assert without_names(first.retrieve(request)) == without_names(last.retrieve(request))
    again = invoke("corpus", "copy", sample_with_vectors, link)
    assert "target_not_empty" in again.err


def test_a_copy_has_the_whole_audit_and_needs_no_policy_file(
    tmp_path: Path, sample_db: Path, database: Callable[..., Path]
) -> None:
    db, link, policy = sample_db, database("template1"), tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    assert invoke("policy", "set", policy, "--db", db).code == 0
    with Engine(db) as engine:
        engine.retrieve(asked(task="token", agent="reader", lexical_only=True))
        # The audit's last rows are in its log while the engine has it open.
        assert invoke("corpus", "copy", db, link).code == 0
    policy.unlink()
    audits = [invoke("policy", "audit", "list", "--json", "--db", path).out for path in (db, link)]
    assert "retrieve" in audits[0]
    assert audits[0] == audits[1]
    with Engine(link) as engine:
        assert engine.retrieve(asked(task="token", agent="reader", lexical_only=True)).selected


# -- writing -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_several_write_at_once(tmp_path: Path, database: Make) -> None:
    link = database()
    command = [*forked_program(), "ingest", "--lexical-only", "--db", str(link)]
    processes = []
    for number in range(4):
        folder = tmp_path / f"notes{number}"
        folder.mkdir()
        for note in range(20):
            (folder / f"n{note}.md").write_text(f"# Note {note}\n\nOf writer {number}.\n")
        processes.append(subprocess.Popen([*command, str(folder)], stderr=subprocess.PIPE))
    assert [(process.wait(), process.stderr and process.stderr.read()) for process in processes]
    with open_reader(link) as corpus:
        assert corpus.value("SELECT count(DISTINCT location) FROM file") == 80
        assert corpus.value("SELECT count(*) FROM document") == 80
    assert invoke("corpus", "doctor", "--db", link).code == 0


@pytest.mark.slow
def test_changes_are_found_by_open_readers(tmp_path: Path, database: Make) -> None:
    link, folder = database(), tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nThe printer is on the third floor.\n")
    assert invoke("ingest", folder, "--db", link).code == 0
    with Engine(link) as engine:
        request = asked(task="where is the printer")
        [first] = engine.retrieve(request).selected
        (folder / "one.md").write_text("# One\n\nThe printer is in the cellar.\n")
        assert invoke("ingest", folder, "--db", link).code == 0
        [second] = engine.retrieve(request).selected
        assert ("third floor" in first.content, "cellar" in second.content) == (True, True)
    assert invoke("corpus", "doctor", "--db", link).code == 0


def test_a_reader_cannot_write(sample: Path) -> None:
    with open_reader(sample) as corpus, pytest.raises(StorageError) as caught:
        corpus.run("DELETE FROM chunk")
    assert caught.value.code == "read_only"


def test_a_damaged_index_is_found_and_built_again(sample: Path, database: Make) -> None:
    link = database(databases.name_in(sample.read_text()))
    with connected(link) as owner:
        owner.execute("DELETE FROM rolebundle.posting WHERE word = 'token'")
    assert "lexical_drift" in invoke("corpus", "doctor", "--db", link).out
    assert invoke("corpus", "doctor", "--repair", "--db", link).code == 0
    assert invoke("corpus", "doctor", "--db", link).code == 0


# -- who may see what ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def governed_template(tmp_path_factory: pytest.TempPathFactory, server: str) -> Path:
    """The sample corpus under a policy, to be copied."""
    link = databases.create(tmp_path_factory.mktemp("governed") / "team.link")
    assert invoke("ingest", SAMPLE, "--lexical-only", "--workers", "1", "--db", link).code == 0
    set_policy(link, POLICY)
    return link


@pytest.fixture
def governed(governed_template: Path, database: Callable[..., Path]) -> Path:
    return database(databases.name_in(governed_template.read_text()))


TABLES = ("document", "chunk", "posting", "chunk_length", "file", "source", "compartment")


def test_a_database_user_sees_what_the_agent_of_its_name_sees(governed: Path) -> None:
    with connected(governed) as owner, connected(governed, "reader") as reader:
        visible = "compartment = ANY (SELECT unnest(compartments) FROM rolebundle.agent_access "
        visible += "WHERE agent = 'reader')"
        for table in ("document", "posting", "chunk_length"):
            rows = f"SELECT count(*) FROM rolebundle.{table}"
            expected = owner.execute(f"{rows} WHERE {visible}".encode()).fetchone()
            assert reader.execute(rows.encode()).fetchone() == expected != (0,)
        paths = reader.execute("SELECT path FROM rolebundle.file").fetchall()
        assert paths
        assert not [path for (path,) in paths if path.startswith("security/")]
        for column in ("content", "title", "headings"):
            hidden = f"SELECT count(*) FROM rolebundle.chunk WHERE {column} LIKE '%Threat model%'"
            assert reader.execute(hidden.encode()).fetchone() == (0,)
        policies = reader.execute("SELECT content FROM rolebundle.policy").fetchall()
        assert "auditor" not in str(policies)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT documents FROM rolebundle.corpus_state",
        "SELECT * FROM rolebundle.agent_access",
        "SELECT last_value FROM rolebundle.source_id_seq",
        "INSERT INTO rolebundle.source (source_id) VALUES ('own')",
        "DELETE FROM rolebundle.document",
        "SET ROLE postgres",
    ],
)
def test_a_database_user_gets_no_more_rights(governed: Path, statement: str) -> None:
    with (
        connected(governed, "reader") as reader,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue)),
    ):
        reader.execute(statement.encode())


@pytest.mark.slow
def test_settings_of_the_session_show_nothing_hidden(governed: Path) -> None:
    with connected(governed, "reader") as reader:
        reader.execute("SET rolebundle.allowed = '{1,2,3,4,5,6,7,8,9}'")
        shown = f"SELECT count(*) FROM {connection.VISIBLE}.document"
        own = "SELECT count(*) FROM rolebundle.document"
        counts = [reader.execute(sql.encode()).fetchone() for sql in (shown, own)]
        assert counts[0] == counts[1]
        known = "SELECT count(*) FROM pg_stats WHERE schemaname = 'rolebundle'"
        assert reader.execute(known.encode()).fetchone() == (0,)


@pytest.mark.slow
def test_statistics_have_no_text(governed: Path) -> None:
    with connected(governed) as owner:
        owner.execute("ANALYZE")
        found = owner.execute(
            "SELECT count(*) FROM pg_stats WHERE schemaname = 'rolebundle' "
            "AND (attname IN ('content', 'title', 'word', 'path') AND most_common_vals IS NOT NULL)"
        )
        assert found.fetchone() == (0,)


def test_other_users_see_nothing(governed: Path) -> None:
    with connected(governed, "stranger") as stranger:
        for table in (*TABLES, "policy", "schema_version"):
            rows = f"SELECT count(*) FROM rolebundle.{table}"
            assert stranger.execute(rows.encode()).fetchone() == (0,)


def test_an_agent_asks_as_its_own_user(governed: Path, tmp_path: Path) -> None:
    name = databases.name_in(governed.read_text())
    connected(governed, "reader").close()
    own = tmp_path / "own.link"
    own.write_text(databases.address(databases.server(), name, "reader"))
    request = asked(task=QUESTIONS[0], agent="reader", lexical_only=True)
    with Engine(own) as as_user, Engine(governed) as as_owner:
        expected = without_names(as_owner.retrieve(request))
        assert without_names(as_user.retrieve(request)) == expected
        assert expected["selected"]
        with pytest.raises(Exception, match="may not see anything"):
            as_user.retrieve(request.model_copy(update={"agent": "auditor"}))


def test_a_database_without_the_views_for_agents_answers_no_agent(governed: Path) -> None:
    with connected(governed) as owner:
        owner.execute(f"DROP VIEW {connection.VISIBLE}.mark".encode())
    with Engine(governed) as engine, pytest.raises(CorpusCorrupt):
        engine.retrieve(asked(task="token", agent="reader", lexical_only=True))


def test_rights_change_in_the_transaction_of_the_policy(governed: Path) -> None:
    own = b"SELECT count(*) FROM rolebundle.document"
    with connected(governed) as owner, connected(governed, "reader") as reader:
        before, seen = reader.execute(own).fetchone(), set()
        denied = {"agents": {"auditor": POLICY["agents"]["auditor"]}}
        thread = Thread(target=set_policy, args=(governed, denied))
        thread.start()
        while thread.is_alive():
            seen.add(reader.execute(own).fetchone())
        assert seen <= {before, (0,)}
        assert reader.execute(own).fetchone() == (0,)
        assert owner.execute(own).fetchone() != (0,)


def test_no_function_of_a_user_opens_a_decision(governed: Path) -> None:
    with connected(governed) as owner, connected(governed, "reader") as reader:
        owner.execute(
            "INSERT INTO rolebundle.decision (scope, number, content, reason, status, effect, "
            "action, about, supersedes, decided_by, authority, valid_from, recorded_at) VALUES "
            "('hr', 1, 'hidden', '', 'active', 'warn', '', '[]', '[]', '', 'owner', '2026', '2026')"
        )
        owner.execute("CREATE SCHEMA IF NOT EXISTS reader AUTHORIZATION reader")
        reader.execute(
            "CREATE FUNCTION reader.json_array_elements_text(json) RETURNS SETOF text "
            "LANGUAGE sql AS $$ SELECT 'hr' $$; SET search_path = reader, pg_catalog"
        )
        found = reader.execute("SELECT count(*) FROM rolebundle.decision").fetchone()
        assert found == (0,)


def test_a_schema_that_everybody_can_fill_is_refused(database: Make) -> None:
    link = database("template1")
    with connected(link) as owner:
        owner.execute("CREATE EXTENSION vector; GRANT CREATE ON SCHEMA public TO PUBLIC")
    with pytest.raises(StorageError) as caught:
        open_writer(link)
    assert caught.value.code == "open_schema"
    with connected(link) as owner:
        owner.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    open_writer(link).close()


@pytest.mark.slow
def test_a_schema_of_another_user_is_refused(database: Make) -> None:
    link = database("template1")
    name = databases.name_in(link.read_text())
    for user in ("stranger", "maker"):
        connected(link, user).close()
    with connected(link) as owner:
        owner.execute("CREATE SCHEMA rolebundle AUTHORIZATION stranger")
        owner.execute("GRANT ALL ON SCHEMA rolebundle TO PUBLIC")
        owner.execute(f'GRANT CREATE ON DATABASE "{name}" TO maker'.encode())
    link.write_text(databases.address(databases.server(), name, "maker"))
    with pytest.raises(StorageError) as caught:
        open_writer(link)
    assert caught.value.code == "foreign_schema"


@pytest.mark.slow
def test_a_stranger_keeps_nobody_from_writing(governed: Path) -> None:
    with connected(governed, "stranger") as stranger:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute("SELECT * FROM rolebundle.schema_version FOR UPDATE")
        with open_writer(governed) as corpus, corpus.writing():
            pass


# -- erasing -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_purge_leaves_no_byte_in_the_tables(tmp_path: Path, database: Make) -> None:
    link, folder = database(), tmp_path / "notes"
    folder.mkdir()
    (folder / "kept.md").write_text("# Kept\n\nAn ordinary note.\n")
    (folder / "gone.md").write_text("# Quixotepurple\n\nThe zebrafinch canary sings.\n")
    assert invoke("ingest", folder, "--db", link).code == 0
    canaries = (b"zebrafinch", b"uixotepurpl", b"gone.md")
    assert all(canaries_in(link, canaries))
    (folder / "gone.md").unlink()
    assert invoke("corpus", "purge", "gone.md", "--yes", "--db", link).code == 0
    assert canaries_in(link, canaries) == [False, False, False]
    dump = [databases.PROGRAMS / "pg_dump", link.read_text().strip()]
    content = subprocess.run(dump, capture_output=True, check=True).stdout
    assert b"An ordinary note." in content
    assert not [canary for canary in canaries if canary in content]
    assert invoke("corpus", "doctor", "--db", link).code == 0


@pytest.mark.slow
def test_a_purge_waits_for_older_snapshots(tmp_path: Path, database: Make) -> None:
    link, folder = database(), tmp_path / "notes"
    folder.mkdir()
    (folder / "gone.md").write_text("# Gone\n\nThe zebrafinch canary sings.\n")
    (folder / "kept.md").write_text("# Kept\n\nAn ordinary note.\n")
    assert invoke("ingest", folder, "--lexical-only", "--db", link).code == 0
    with connected(link, "stranger") as stranger:
        stranger.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        stranger.execute("SELECT 1")
        invoke("corpus", "purge", "gone.md", "--yes", "--db", link)
        assert canaries_in(link, (b"zebrafinch",)) == [True]
        with open_reader(link) as corpus:
            assert corpus.column("SELECT state FROM purge") == ["erased"]
    with Admin(link) as admin:
        finish_pending(admin.workspace)
    assert canaries_in(link, (b"zebrafinch",)) == [False]


def test_a_transaction_with_a_failed_statement_is_not_reported_as_written(database: Make) -> None:
    with open_writer(database()) as corpus:
        with pytest.raises(StorageError) as caught, corpus.writing():
            corpus.run("INSERT INTO source (source_id) VALUES ('one')")
            with suppress(RolebundleError):
                corpus.run("INSERT INTO source (source_id) VALUES ('one')")
        assert caught.value.code == "not_committed"
        assert corpus.value("SELECT count(*) FROM source") == 0


@pytest.mark.slow
def test_many_blocks_of_a_word_are_joined(tmp_path: Path, database: Make) -> None:
    link, folder = database(), tmp_path / "notes"
    folder.mkdir()
    with patch.object(indexes, "MAX_BLOCKS", 4):
        for number in range(7):
            text = f"# Note {number}\n\nThe printer is number {number}.\n"
            (folder / f"n{number}.md").write_text(text)
            with Admin(link) as admin:
                admin.ingest([folder], IngestOptions(lexical_only=True))
    with open_reader(link) as corpus:
        blocks = "SELECT max(n) FROM (SELECT count(*) AS n FROM posting GROUP BY word) AS counted"
        assert corpus.value(blocks) <= 5
    assert invoke("corpus", "doctor", "--db", link).code == 0


def canaries_in(link: Path, canaries: tuple[bytes, ...]) -> list[bool]:
    """Whether each text is in a file of a table, an index or the catalog of the database."""
    with connected(link) as owner:
        owner.execute("CHECKPOINT")
        [[folder]] = owner.execute("SHOW data_directory").fetchall()
        paths = owner.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE pg_relation_filepath(oid) "
            "IS NOT NULL AND relnamespace = 'rolebundle'::regnamespace OR relname LIKE 'pg_toast%' "
            "OR relname = 'pg_statistic'"
        ).fetchall()
    content = b"".join(
        (Path(folder) / path).read_bytes() for (path,) in paths if (Path(folder) / path).exists()
    )
    return [canary in content for canary in canaries]


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["corpus", "backup", "copy.db"], ["corpus", "restore", "backup.db", "--yes"]],
    ids=" ".join,
)
def test_what_belongs_to_a_file_names_the_way_of_a_database(
    sample: Path, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backup.db").write_bytes(b"")
    result = invoke(*arguments, "--db", sample)
    assert result.code == 2
    assert "corpus_in_database" in result.err
    assert "pg_dump" in result.err


@pytest.mark.slow
def test_a_lost_connection_is_an_error_that_can_be_retried(database: Make) -> None:
    link = database()
    assert invoke("ingest", SAMPLE / "product", "--lexical-only", "--db", link).code == 0
    request = asked(task="plan", lexical_only=True)
    with Engine(link) as engine:
        before = engine.retrieve(request)
        with connected(link) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(CorpusBusy) as caught:
            engine.retrieve(request)
        assert (caught.value.code, caught.value.retryable) == ("database_unreachable", True)
        assert without_names(engine.retrieve(request)) == without_names(before)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("postgresql://ada:secret@localhost/team", "password_in_address"),
        ("postgresql://ada:secret#x@localhost/team", "password_in_address"),
        ("postgresql://ada@localhost/team?password=secret", "password_in_address"),
        ("postgresql://ada@db.example.com/team?sslmode=require", "address_without_tls"),
        ("postgresql://ada@db.example.com/team?sslmode=disable", "address_without_tls"),
        ("postgresql:///team?host=localhost,db.example.com&sslmode=prefer", "address_without_tls"),
        ("postgresql://localhost/team#?host=db.example.com&sslmode=disable", "address_without_tls"),
        ("postgresql://db.example.com/team?sslkeylogfile=/tmp/keys", "address_option"),
        ("postgresql://localhost/team?service=other", "address_option"),
        ("postgresql://localhost/team?hostaddr=203.0.113.9", "address_option"),
        ("postgresql://[::1/team", "bad_address"),
    ],
)
def test_an_address_that_is_not_safe_is_refused(address: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        parameters_of(address)
    assert caught.value.code == code
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "mode"),
    [
        ("postgresql:///team", None),
        ("postgresql://ada@127.0.0.1:5433/team", None),
        ("postgresql://127.0.0.1:5433,[::1]:5434/team", None),
        ("postgresql://ada@/team?host=/run/postgresql", None),
        ("postgresql://ada@/team?host=db.example.com", "verify-full"),
        ("postgresql://localhost,db.example.com/team", "verify-full"),
        ("postgresql://sslmode=@db.example.com/team", "verify-full"),
        ("postgresql://db.example.com/team?sslmode=verify-ca", "verify-ca"),
    ],
)
def test_another_machine_is_verified(
    address: str, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert parameters_of(address).get("sslmode") == mode


def test_the_environment_cannot_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.com")
    assert parameters_of("postgresql:///team")["sslmode"] == "verify-full"
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.9")
    with pytest.raises(UsageError, match="PGHOSTADDR"):
        parameters_of("postgresql://localhost/team")


def test_statements_are_translated() -> None:
    sql, places = connection.translated(
        "SELECT a FROM main.t CROSS JOIN main.u v ON v.id = t.id "
        "WHERE a IN (SELECT value FROM json_each(?2)) AND b = ?1 AND c LIKE 'x%'"
    )
    assert sql == (
        "SELECT a FROM rolebundle.t JOIN rolebundle.u v ON v.id = t.id "
        "WHERE a = ANY(%s) AND b = %s AND c LIKE 'x%%'"
    )
    assert places == ((1, True), (0, False))


# -- a database that is away -----------------------------------------------------------------------


def pulled(link: Path, tmp_path: Path, *audience: str) -> Outcome:
    """Publish a copy of a database to an audience, and pull the replica that answers for it."""
    place = Path(mkdtemp(dir=tmp_path))
    copy, share, key = place / "copy.db", place / "share", place / "team.key"
    assert invoke("corpus", "copy", link, copy).code == 0
    assert invoke("replica", "keygen", key).code == 0
    publish = ("replica", "publish", share, *audience, "--key", key, "--db", copy)
    assert invoke(*publish).code == 0
    return invoke("replica", "pull", share, "--key", place / "team.pub", "--db", link)


def take_away(link: Path) -> str:
    """Let a link lead to no database. Return what it was."""
    before = link.read_text()
    link.write_text(f"{databases.address(databases.server(), 'gone')}\n")
    return before


@pytest.mark.slow
def test_the_replica_answers_if_the_database_is_away(
    sample: Path, database: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = database(databases.name_in(sample.read_text()))
    assert pulled(link, tmp_path, "--level", "confidential").code == 0
    question = asked(task=QUESTIONS[0])
    with Engine(link) as engine:
        before = engine.retrieve(question)
        assert before.corpus.in_place_of is None
        address = take_away(link)
        with connected(sample) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (databases.name_in(address),),
            )
        with pytest.raises(CorpusBusy, match="cannot be reached"):
            engine.retrieve(question)
        engine.refresh()
        bundle = engine.retrieve(question)
        assert (bundle.corpus.in_place_of, bundle.corpus.file) == (link.name, "team0.replica.db")
        assert [row.chunk_id for row in bundle.selected] == [
            row.chunk_id for row in before.selected
        ]
        warnings = {warning.code: warning.message for warning in bundle.warnings}
        assert "the replica of team was published" in warnings["DATABASE_UNREACHABLE"]
        refused = invoke("ingest", SAMPLE, "--db", link)
        assert (refused.code, "database_unreachable" in refused.err) == (5, True)

        link.write_text(address)
        engine.refresh()
        assert engine.retrieve(question).corpus.in_place_of == link.name
        monkeypatch.setattr(workspace, "monotonic", lambda: monotonic() + workspace.RETRY_SECONDS)
        engine.refresh()
        assert engine.retrieve(question).corpus.in_place_of is None
        opened = engine.workspace.corpus
        engine.refresh()
        assert engine.workspace.corpus is opened


@pytest.mark.slow
def test_an_ordinary_corpus_does_not_stand_in_for_a_database(
    sample: Path, database: Callable[..., Path]
) -> None:
    link = database(databases.name_in(sample.read_text()))
    assert invoke("corpus", "copy", link, link.with_suffix(".replica.db")).code == 0
    take_away(link)
    outcome = invoke("retrieve", QUESTIONS[0], "--db", link)
    assert (outcome.code, outcome.out, "not_a_replica" in outcome.err) == (2, "", True)


@pytest.mark.slow
def test_a_policy_that_comes_later_ends_a_replica_for_everyone(
    sample: Path, database: Callable[..., Path], tmp_path: Path
) -> None:
    link, policy = database(databases.name_in(sample.read_text())), tmp_path / "policy.json"
    assert pulled(link, tmp_path, "--level", "internal").code == 0
    policy.write_text(json.dumps(POLICY))
    assert invoke("policy", "set", policy, "--db", link).code == 0
    take_away(link)
    for agent in ("auditor", "nobody"):
        outcome = invoke("retrieve", QUESTIONS[0], "--agent", agent, "--db", link)
        assert (outcome.code, outcome.out) == (2, "")
        assert "no replica for an agent" in outcome.err


@pytest.mark.slow
def test_under_a_policy_the_replica_is_for_an_agent(
    sample: Path, database: Callable[..., Path], tmp_path: Path
) -> None:
    link = database(databases.name_in(sample.read_text()))
    set_policy(link, POLICY)
    for_everyone = pulled(link, tmp_path, "--level", "internal")
    assert (for_everyone.code, "replica_unsuitable" in for_everyone.err) == (2, True)
    assert not link.with_suffix(".replica.db").exists()

    laptop = tmp_path / "laptop.link"
    laptop.write_text(link.read_text())
    assert pulled(laptop, tmp_path, "--agent", "auditor").code == 0
    take_away(laptop)
    for agent, code in (("auditor", 0), ("reader", 4)):
        assert invoke("retrieve", QUESTIONS[0], "--agent", agent, "--db", laptop).code == code
    recorded = invoke("policy", "audit", "list", "--db", laptop, "--json").json()
    assert [row["kind"] for row in recorded["rows"]] == ["settings", "retrieve", "refused"]


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("has_policy", [False, True])
def test_a_warm_answer_takes_four_round_trips(
    sample: Path, database: Callable[..., Path], has_policy: bool
) -> None:
    link, agent = database(databases.name_in(sample.read_text())), None
    if has_policy:
        set_policy(link, POLICY)
        agent = "auditor"
    with counting_round_trips(link) as (far, waited), Engine(far) as engine:
        for task in QUESTIONS[2:4]:
            engine.retrieve(asked(task=task, agent=agent))
        before = waited()
        engine.retrieve(asked(task=QUESTIONS[0], agent=agent))
        # With a policy the audit counts what it kept back, in a snapshot of its own.
        assert waited() - before == (5 if has_policy else 4)


@pytest.mark.slow
def test_agents_of_one_server_get_their_own_answers(
    sample: Path, database: Callable[..., Path]
) -> None:
    link = database(databases.name_in(sample.read_text()))
    set_policy(link, POLICY)
    asks = [asked(task=task, agent=agent) for task in QUESTIONS[:2] for agent in POLICY["agents"]]
    alone = []
    for request in asks:
        with Engine(link) as engine:
            alone.append(engine.retrieve(request).selected)
    with Engine(link) as engine:
        for _ in range(2):
            assert [engine.retrieve(request).selected for request in asks] == alone
    assert alone[0] != alone[1]
