"""Opening a corpus in PostgreSQL: connect, and create or migrate its schema.

The schema is in ``migrations/postgres/``.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import apsw
import psycopg
from psycopg import errors
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import NumericBinaryLoader

from rolebundle.errors import StorageError, UsageError, WrongFile
from rolebundle.resources import data_folder
from rolebundle.storage.address import parameters_of
from rolebundle.storage.compartments import visible_compartments
from rolebundle.storage.corpus import RESTRICTING_VIEWS, Corpus
from rolebundle.storage.file import FileFormat
from rolebundle.storage.postgres import indexes
from rolebundle.storage.postgres.connection import (
    SCHEMA,
    VISIBLE,
    PostgresCorpus,
    mapped_errors,
    translated,
)
from rolebundle.storage.sqlite import Row, closed_on_error, stamp_of

_SINCE_WORDS_COMPARED = 3
"""The version in which words are stored as they are compared."""
_CONNECT_SECONDS = 10


class _NumberLoader(NumericBinaryLoader):
    """Decimal numbers, which sums of whole numbers are, as in SQLite."""

    def load(self, data: Any) -> Any:
        number = super().load(data)
        return int(number) if number == int(number) else float(number)


def connect(path: Path, address: str, *, writable: bool) -> psycopg.Connection[Row]:
    """Connect to the database of a link."""
    parameters = parameters_of(address)
    # The pages of a corpus are in memory or on an SSD, where an index costs little.
    options = f"-csearch_path={SCHEMA} -crandom_page_cost=1.1"
    if not writable:
        options += " -cdefault_transaction_read_only=on"
    with mapped_errors(path):
        connection = psycopg.connect(
            **parameters,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            tcp_user_timeout=_CONNECT_SECONDS * 1000,
            application_name="rolebundle",
            options=options,
        )
        try:
            _find_vectors(path, connection)
        except BaseException:
            connection.close()
            raise
    # As its text, as in SQLite.
    set_json_loads(lambda text: text if isinstance(text, str) else text.decode(), connection)
    connection.adapters.register_loader("numeric", _NumberLoader)
    return connection


def _find_vectors(path: Path, connection: psycopg.Connection[Row]) -> None:
    """Make the type of vectors known, wherever the database has it.

    Raises:
        StorageError: everybody may create objects beside it, which would take the place of ours.
    """
    [*found] = connection.execute(
        "SELECT quote_ident(nspname), EXISTS (SELECT 1 FROM aclexplode(nspacl) "
        "WHERE grantee = 0 AND privilege_type = 'CREATE') FROM pg_extension "
        "JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    )
    for schema, is_open in found:
        if is_open:
            raise StorageError(
                "open_schema",
                f"{path}: every user of the database may create objects in its schema {schema}",
                f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC",
            )
        if schema != SCHEMA:
            connection.execute(f"SET search_path = {SCHEMA}, {schema}".encode())
        indexes.register(connection)


def open_reader(path: Path, address: str, file_format: FileFormat) -> Corpus:
    """Open the corpus of a link for retrieval."""
    corpus = _opened(path, address, file_format, writable=False)
    with mapped_errors(path), closed_on_error(corpus):
        version = _version(corpus)
        if version == 0:
            step = "run `rolebundle ingest PATH` first, or name another one with --db"
            raise UsageError("corpus_missing", f"{path}: there is no corpus in this database", step)
        if version != len(migrations()):
            raise _wrong_version(path, version)
    return corpus


def open_writer(path: Path, address: str, file_format: FileFormat) -> Corpus:
    """Open the corpus of a link for writing. Create or migrate it if necessary."""
    corpus = _opened(path, address, file_format, writable=True)
    with mapped_errors(path), closed_on_error(corpus):
        version = _version(corpus)
        if version > len(migrations()):
            raise _wrong_version(path, version)
        if version == 0:
            _create(corpus)
        if _version(corpus) < len(migrations()):
            with corpus.writing():
                _migrate(corpus)
            _find_vectors(path, corpus.connection)
    return corpus


def _wrong_version(path: Path, version: int) -> WrongFile:
    is_older = version < len(migrations())
    return WrongFile(
        "older_schema" if is_older else "newer_schema",
        f"{path}: has schema {version}, this version knows {len(migrations())}",
        "run `rolebundle ingest` once with this version" if is_older else "upgrade rolebundle",
    )


def _opened(path: Path, address: str, file_format: FileFormat, *, writable: bool) -> PostgresCorpus:
    connection = connect(path, address, writable=writable)
    # SQLite's own connection is used by no method of this class.
    none = cast("apsw.Connection", None)
    stamp = stamp_of(path, frozen=True)
    return PostgresCorpus(path, none, writable, file_format, stamp, connection=connection)


@cache
def migrations() -> tuple[Path, ...]:
    """The migration files, oldest first. File number n brings the schema to version n."""
    return tuple(sorted(data_folder("migrations").glob("postgres/[0-9][0-9][0-9][0-9]_[a-z]*.sql")))


def _version(corpus: Corpus) -> int:
    """The version of the schema; 0 if there is none.

    Raises:
        StorageError: this user may not see it.
    """
    if not corpus.value("SELECT to_regclass(?) IS NOT NULL", (f"{SCHEMA}.schema_version",)):
        return 0
    version = corpus.value(f"SELECT version FROM {SCHEMA}.schema_version")
    if version is None:
        problem = f"{corpus.path}: this user of the database may see nothing of the corpus"
        step = "connect as its owner, or as a user that is named like an agent of the policy"
        raise StorageError("database_denied", problem, step)
    return int(version)


def _create(corpus: PostgresCorpus) -> None:
    """Create the schema of a corpus, with the number of its version.

    Raises:
        StorageError: another user has made a schema of this name.
    """
    run = corpus.connection.execute
    with suppress(errors.DuplicateSchema, errors.UniqueViolation), corpus.connection.transaction():
        run(f"CREATE SCHEMA {SCHEMA}".encode())
        run(
            f"CREATE TABLE {SCHEMA}.schema_version "
            "(version integer NOT NULL, writes bigint NOT NULL)".encode()
        )
        run(f"INSERT INTO {SCHEMA}.schema_version VALUES (0, 0)".encode())
        return
    # Another process was faster, or another user.
    own = "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = ?"
    if not corpus.value(own, (SCHEMA,)):
        problem = f"{corpus.path}: another user of the database has made a schema {SCHEMA}"
        step = "find out why, and drop it, or use another database"
        raise StorageError("foreign_schema", problem, step)


def _migrate(corpus: PostgresCorpus) -> None:
    """Bring the schema to the newest version, inside a write transaction."""
    version = _version(corpus)  # Another process may have been faster.
    run = corpus.connection.execute
    for entry in migrations()[version:]:
        run(entry.read_bytes())
    if version == 0:
        corpus.run("INSERT INTO corpus_state VALUES (1, ?, 0, 0, 0)", (uuid4().hex,))
    _create_views(corpus)
    for compartment in visible_compartments(corpus) if 0 < version < _SINCE_WORDS_COMPARED else ():
        indexes.rebuild(corpus, compartment.id)
    run(f"UPDATE {SCHEMA}.schema_version SET version = {len(migrations())}".encode())


def _create_views(corpus: PostgresCorpus) -> None:
    """What a restricted connection sees: the same views as in a file, in a schema of their own."""
    run = corpus.connection.execute
    run(
        f"DROP SCHEMA IF EXISTS {VISIBLE} CASCADE; CREATE SCHEMA {VISIBLE}; "
        f"SET LOCAL search_path = {VISIBLE}, {SCHEMA}; GRANT USAGE ON SCHEMA {VISIBLE} "
        "TO PUBLIC; "
        f"CREATE VIEW allowed_compartment AS SELECT unnest(coalesce(nullif(current_setting("
        f"'{SCHEMA}.allowed', true), ''), '{{}}')::integer[]) AS compartment; "
        f"CREATE VIEW restricted_state AS SELECT nullif(current_setting("
        f"'{SCHEMA}.generation', true), '')::bigint AS generation".encode()
    )
    for statement in RESTRICTING_VIEWS:
        if not statement.startswith("CREATE TEMP TABLE"):
            # With the rights of who asks, so that the rules of the tables hold behind it.
            view = statement.replace("CREATE TEMP VIEW", "CREATE VIEW").replace("temp.", "")
            view = view.replace(" AS SELECT", " WITH (security_invoker) AS SELECT", 1)
            run(translated(view)[0].encode())
    run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {VISIBLE} TO PUBLIC".encode())
    run(f"SET LOCAL search_path = {SCHEMA}".encode())
