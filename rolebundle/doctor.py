"""The checks of `rolebundle corpus doctor`, and its repair. No check changes a byte of the files.

The corpus and the audit are read from private copies, because even a read-only connection may
create SQLite's files beside the file that it reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from shlex import quote

from rolebundle import system
from rolebundle.contracts import upkeep
from rolebundle.errors import CorpusCorrupt, RolebundleError, WrongFile
from rolebundle.policy.access import deny_matcher, policy_problem
from rolebundle.policy.audit import Recorder
from rolebundle.policy.audit_check import verify_audit
from rolebundle.policy.lint import lint_active_policy
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


def examine(path: Path) -> upkeep.DoctorReport:
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
        _audit(audit_path(path)),
        *(_check("system", f"not kept on this system: {phrase}") for phrase in system.not_kept()),
    ]
    is_sound = all(check.state != "problem" for check in checks)
    return upkeep.DoctorReport(location=address or str(path), sound=is_sound, checks=checks)


def _examine_database(path: Path) -> list[upkeep.DoctorCheck]:
    """What can be checked of a corpus in a database; its server checks its own pages."""
    with open_reader(path) as corpus, corpus.reading():
        problems = find_problems(corpus, deny_matcher(corpus))
        return [*_examine_corpus(corpus, problems, "restore a backup of the database")]


def _check(
    name: str, message: str, remedy: str = "", state: upkeep.CheckState | None = None
) -> upkeep.DoctorCheck:
    """What a check found. There is a remedy if something is to be done."""
    state = state or ("warning" if remedy else "ok")
    return upkeep.DoctorCheck(name=name, state=state, message=message, remedy=remedy)


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


def _permissions(path: Path) -> upkeep.DoctorCheck:
    wide = []
    for file in _own_files(path):
        with suppress(OSError):
            if system.is_open_to_others(file.stat()):
                wide.append(file)
    if wide:
        names = ", ".join(file.name for file in wide)
        return _check(
            "permissions",
            f"other users may open {names}",
            f"chmod go= {' '.join(quote(str(file)) for file in wide)}",
        )
    return _check("permissions", "only the owner can open the files")


def _copies(path: Path) -> upkeep.DoctorCheck:
    copies = purge.backups(path)
    if not copies:
        return _check("copies", "none")
    names = ", ".join(file.name for file in copies)
    return _check(
        "copies",
        f"older copies of the corpus, which a purge does not change: {names}",
        "rolebundle corpus purge --backups, if you do not need them",
    )


# -- the content -----------------------------------------------------------------------------------


def _examine_file(path: Path) -> Iterator[upkeep.DoctorCheck]:
    """The checks of a corpus file. If it is damaged, those that can still be done."""
    copy = path
    with ExitStack() as stack:
        try:
            check_path(path, corpus_format())
            yield _permissions(path)
            yield _copies(path)
            copy = stack.enter_context(private_copy(path))
            corpus = stack.enter_context(open_writer(copy, lock=False, verify=False, replica=True))
            problems = find_problems(corpus, deny_matcher(corpus))
        except CorpusCorrupt as error:
            message = error.message.removeprefix(f"{copy}: ")
            yield _check("content", message, REPAIR, "problem")
            return
        except WrongFile as error:
            raise type(error)(
                error.code, error.message.replace(str(copy), str(path)), error.hint
            ) from error
        for check in _examine_corpus(corpus, problems, _remedy(corpus)):
            message = check.message.replace(str(copy), str(path))
            yield check.model_copy(update={"message": message})


def _examine_corpus(
    corpus: Corpus, problems: Sequence[upkeep.CheckProblem], remedy: str
) -> Iterator[upkeep.DoctorCheck]:
    messages = [f"{found.message} [{found.code}]" for found in problems[:_MAX_PROBLEMS]]
    if problems[_MAX_PROBLEMS:]:
        messages.append(f"and {len(problems) - _MAX_PROBLEMS} more problems")
    for message in messages:
        yield _check("content", message, remedy, "problem")
    if not messages:
        yield _check("content", "rows, hashes and indexes agree")
    for name, check in (("policy", _policy), ("purges", _purges)):
        try:
            yield check(corpus)
        except (CorpusCorrupt, ValueError):
            yield _check(name, "not checked, because the corpus is damaged", remedy)


def _remedy(corpus: Corpus) -> str:
    """What to do about damage. A replica is replaced and not repaired."""
    try:
        return PULL if stored_manifest(corpus) else REPAIR
    except CorpusCorrupt:
        return REPAIR


def _policy(corpus: Corpus) -> upkeep.DoctorCheck:
    stored = records.load_policy(corpus)
    if stored is None:
        return _check("policy", "none")
    problem = policy_problem(stored)
    if problem:
        return _check("policy", f"every agent is denied: {problem}", "rolebundle policy set FILE")
    errors = [finding for finding in lint_active_policy(corpus) if finding.level == "error"]
    for error in errors:
        return _check("policy", f"{error.place}: {error.message}", "rolebundle policy set FILE")
    return _check("policy", f"in effect since {stored.set_at}" if stored.set_at else "in effect")


def _purges(corpus: Corpus) -> upkeep.DoctorCheck:
    pending = len(purge.unfinished(corpus))
    if pending:
        return _check("purges", f"{pending} pending", "rolebundle corpus purge")
    return _check("purges", "none pending")


# -- the audits ------------------------------------------------------------------------------------


def _audit(path: Path) -> upkeep.DoctorCheck:
    if not is_there(path):
        return _check("audit", "none")
    remedy = "keep the file as evidence; see rolebundle policy audit verify"
    try:
        with private_copy(path) as copy:
            result = verify_audit(copy)
    except RolebundleError as error:
        return _check("audit", error.message, remedy, "problem")
    if result.problem is not None:
        return _check("audit", f"{path}: {result.problem.message}", remedy, "problem")
    return _check("audit", f"{counted(result.rows, 'row')}, head {result.head}")


# -- the repair ------------------------------------------------------------------------------------
#
# The indexes are made again from the documents. Everything else has no second copy in the file.


def repair(path: Path) -> upkeep.RepairReport:
    """Rebuild the lexical indexes, and remove the vectors that are not what was stored.

    The next ingest embeds their chunks again. A sound corpus is left alone.

    Raises:
        UsageError: there is no corpus, or it is a replica.
        WrongFile: it belongs to another application, or has another schema.
        CorpusBusy, StorageError: it cannot be written.
        CorpusCorrupt: something else than an index is damaged. Nothing was changed.
    """
    try:
        writer = open_writer(path, verify=False)
    except CorpusCorrupt as error:
        raise _beyond_repair(path, error.message) from error
    with writer as corpus:
        problems = find_problems(corpus, deny_matcher(corpus))
        for problem in problems:
            if problem.code not in IN_INDEXES:
                raise _beyond_repair(path, problem.message)
        if problems:
            with Recorder(path).change(corpus, "repair") as details:
                rebuild_indexes(corpus)
                details["problems"] = len(problems)
        return upkeep.RepairReport(location=str(path), repaired=bool(problems), problems=problems)


def _beyond_repair(path: Path, problem: str) -> CorpusCorrupt:
    return CorpusCorrupt(
        "beyond_repair",
        f"{path}: {problem.removeprefix(f'{path}: ')}; it was not changed",
        "run `rolebundle corpus restore BACKUP`, or move it away and ingest again",
    )
