"""The checks of `rolebundle corpus doctor`, and its repair. No check changes a byte of the files.

The corpus and the audit are read from private copies, because even a read-only connection may
create SQLite's files beside the file that it reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

from rolebundle.contracts.status import CheckProblem
from rolebundle.contracts.upkeep import CheckState, DoctorCheck, DoctorReport, RepairReport
from rolebundle.errors import CorpusCorrupt, RolebundleError, WrongFile
from rolebundle.policy.access import policy_problem
from rolebundle.policy.audit import Recorder
from rolebundle.policy.audit_check import verify_audit
from rolebundle.policy.policy_change import deny_matcher
from rolebundle.storage import purge, records
from rolebundle.storage.address import address_of
from rolebundle.storage.backup import private_copy
from rolebundle.storage.check import IN_INDEXES, find_problems, rebuild_indexes
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import (
    COMPANIONS,
    audit_path,
    check_path,
    heartbeat_path,
    is_there,
    published_folder,
)
from rolebundle.storage.opening import corpus_format, open_reader
from rolebundle.storage.publications import PULL, stored_manifest
from rolebundle.storage.writing import open_writer
from rolebundle.text.words import counted

REPAIR = "rolebundle corpus doctor --repair, or rolebundle corpus restore BACKUP"

_MAX_PROBLEMS = 20


def examine(path: Path) -> DoctorReport:
    """Check a corpus and what belongs to it.

    Raises:
        UsageError: there is no corpus.
        WrongFile: it belongs to another application, or a newer version made it.
        StorageError: it cannot be read.
    """
    path = Path(os.path.realpath(path))
    address = address_of(path)
    checks = [
        *(_examine_database(path) if address else _examine_file(path)),
        *_named("audit", _audit(audit_path(path))),
    ]
    is_sound = all(check.state != "problem" for check in checks)
    return DoctorReport(location=address or str(path), sound=is_sound, checks=checks)


def _examine_database(path: Path) -> list[DoctorCheck]:
    """What can be checked of a corpus in a database; its server checks its own pages."""
    with open_reader(path) as corpus, corpus.reading():
        problems = find_problems(corpus, deny_matcher(corpus))
        return [*_examine_corpus(corpus, problems, "restore a backup of the database")]


Finding = tuple[CheckState, str, str]
"""The state, a message, and what to do; empty if there is nothing to do."""


def _ok(message: str) -> Finding:
    return "ok", message, ""


def _warning(message: str, remedy: str) -> Finding:
    return "warning", message, remedy


def _problem(message: str, remedy: str) -> Finding:
    return "problem", message, remedy


def _named(name: str, found: Finding | Iterable[Finding]) -> list[DoctorCheck]:
    """What a check found, under its name."""
    findings = [found] if isinstance(found, tuple) else found
    return [
        DoctorCheck(name=name, state=state, message=message, remedy=remedy)
        for state, message, remedy in findings
    ]


# -- the machine and the files beside the corpus ---------------------------------------------------


def _own_files(path: Path) -> list[Path]:
    """The corpus and its companions and copies beside it, as far as they exist."""
    files = [
        Path(f"{file}{suffix}")
        for file in (path, audit_path(path), heartbeat_path(path))
        for suffix in ("", *COMPANIONS)
    ]
    files.append(published_folder(path))
    return [file for file in files if is_there(file)] + purge.backups(path)


def _permissions(path: Path) -> Finding:
    wide = []
    for file in _own_files(path):
        try:
            if file.stat().st_mode & 0o077:
                wide.append(file)
        except OSError:
            continue
    if wide:
        names = ", ".join(file.name for file in wide)
        return _warning(
            f"other users may open {names}",
            f"chmod go= {' '.join(quote(str(file)) for file in wide)}",
        )
    return _ok("only the owner can open the files")


def _copies(path: Path) -> Finding:
    copies = purge.backups(path)
    if not copies:
        return _ok("none")
    names = ", ".join(file.name for file in copies)
    return _warning(
        f"older copies of the corpus, which a purge does not change: {names}",
        "rolebundle corpus purge --backups, if you do not need them",
    )


# -- the content -----------------------------------------------------------------------------------


def _examine_file(path: Path) -> Iterator[DoctorCheck]:
    """The checks of a corpus file. If it is damaged, those that can still be done."""
    copy = path
    with ExitStack() as stack:
        try:
            check_path(path, corpus_format())
            yield from _named("permissions", _permissions(path))
            yield from _named("copies", _copies(path))
            copy = stack.enter_context(private_copy(path))
            corpus = stack.enter_context(open_writer(copy, lock=False, verify=False, replica=True))
            problems = find_problems(corpus, deny_matcher(corpus))
        except CorpusCorrupt as error:
            message = error.message.removeprefix(f"{copy}: ")
            yield from _named("content", _problem(message, REPAIR))
            return
        except WrongFile as error:
            raise type(error)(
                error.code, error.message.replace(str(copy), str(path)), error.hint
            ) from error
        for check in _examine_corpus(corpus, problems, _remedy(corpus)):
            message = check.message.replace(str(copy), str(path))
            yield check.model_copy(update={"message": message})


def _examine_corpus(
    corpus: Corpus, problems: Sequence[CheckProblem], remedy: str
) -> Iterator[DoctorCheck]:
    messages = [f"{found.message} [{found.code}]" for found in problems[:_MAX_PROBLEMS]]
    if problems[_MAX_PROBLEMS:]:
        messages.append(f"and {len(problems) - _MAX_PROBLEMS} more problems")
    found = [_problem(message, remedy) for message in messages]
    yield from _named("content", found or _ok("rows, hashes and indexes agree"))
    checks: dict[str, Callable[[Corpus], Finding | Iterable[Finding]]] = {
        "policy": _policy,
        "purges": _purges,
    }
    for name, check in checks.items():
        try:
            yield from _named(name, check(corpus))
        except (CorpusCorrupt, ValueError):
            unchecked = "not checked, because the corpus is damaged"
            yield from _named(name, _warning(unchecked, remedy))


def _remedy(corpus: Corpus) -> str:
    """What to do about damage. A replica is replaced and not repaired."""
    try:
        return PULL if stored_manifest(corpus) else REPAIR
    except CorpusCorrupt:
        return REPAIR


def _policy(corpus: Corpus) -> Finding:
    stored = records.load_policy(corpus)
    if stored is None:
        return _ok("none")
    problem = policy_problem(stored)
    if problem:
        return _warning(f"every agent is denied: {problem}", "rolebundle policy set FILE")
    return _ok(f"in effect since {stored.set_at}" if stored.set_at else "in effect")


def _purges(corpus: Corpus) -> Finding:
    pending = len(purge.unfinished(corpus))
    if pending:
        return _warning(f"{pending} pending", "rolebundle corpus purge")
    return _ok("none pending")


# -- the audits ------------------------------------------------------------------------------------


def _audit(path: Path) -> Finding:
    if not is_there(path):
        return _ok("none")
    remedy = "keep the file as evidence; see rolebundle policy audit verify"
    try:
        with private_copy(path) as copy:
            result = verify_audit(copy)
    except RolebundleError as error:
        return _problem(error.message, remedy)
    if result.problem is not None:
        return _problem(f"{path}: {result.problem.message}", remedy)
    return _ok(f"{counted(result.rows, 'row')}, head {result.head}")


# -- the repair ------------------------------------------------------------------------------------
#
# The indexes are made again from the documents. Everything else has no second copy in the file.


def repair(path: Path) -> RepairReport:
    """Rebuild the lexical indexes, and remove the vectors that are not what was stored.

    The next ingest embeds their chunks again. A sound corpus is left alone.

    Raises:
        UsageError: there is no corpus, or it is a replica.
        WrongFile: it belongs to another application, or has another schema.
        CorpusBusy, StorageError: it cannot be written.
        CorpusCorrupt: something else than an index is damaged. Nothing was changed.
    """
    with open_writer(path, verify=False) as corpus:
        problems = find_problems(corpus, deny_matcher(corpus))
        for problem in problems:
            if problem.code not in IN_INDEXES:
                raise CorpusCorrupt(
                    "beyond_repair",
                    f"{path}: {problem.message}; it was not changed",
                    "run `rolebundle corpus restore BACKUP`, or move it away and ingest again",
                )
        if problems:
            with Recorder(path).change(corpus, "repair") as details:
                rebuild_indexes(corpus)
                details["problems"] = len(problems)
        return RepairReport(location=str(path), repaired=bool(problems), problems=problems)
