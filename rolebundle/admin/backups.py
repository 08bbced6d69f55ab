"""Backups of a corpus with its audit, and putting one in the place of a corpus.

A backup has up to three files: FILE, which is itself a corpus; FILE.audit, its audit; and
FILE.manifest.json, with their hashes. FILE gets its name last, so a backup that has it is complete.
How files are copied and replaced is in :mod:`rolebundle.storage.backup`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import ValidationError

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import BackedUpFile, BackupManifest, BackupReport, RestoreReport
from rolebundle.errors import CorpusCorrupt, RolebundleError, UsageError, WrongFile, storage_errors
from rolebundle.policy.access import deny_matcher, save_database_access
from rolebundle.policy.audit import Recorder
from rolebundle.policy.audit_check import verify_audit
from rolebundle.storage import purge, records
from rolebundle.storage.address import address_of, in_database_error
from rolebundle.storage.audit import AUDIT_FORMAT, open_audit_reader
from rolebundle.storage.backup import copy_corpus, replace_file, sha256_of
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus, CorpusCounts, corpus_counts
from rolebundle.storage.file import (
    audit_path,
    folder_lock,
    is_there,
    partial_file,
    remove_stale_partials,
    rename_if_free,
    rename_synced,
    sync_file,
)
from rolebundle.storage.opening import corpus_format, latest_version, open_reader
from rolebundle.storage.publications import PULL, load_manifest, stored_manifest
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace

_MAX_MANIFEST_BYTES = 1 << 20
_MOMENT = "%Y%m%d-%H%M%S"


def create_backup(workspace: Workspace, target: Path) -> BackupReport:
    """Copy a corpus and its audit while other processes may write, and check the copy.

    Raises:
        UsageError: there is no corpus, it is a replica, or something has the name of the backup.
        CorpusCorrupt: the corpus is damaged. There is no backup.
        WrongFile, StorageError: the corpus cannot be read or the backup cannot be written.
    """
    path = workspace.path
    target = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link
    audit, manifest_file = audit_path(target), manifest_path(target)
    remove_stale_partials(target)
    _refuse_existing(target)
    warnings: list[str] = []
    with (
        storage_errors(
            "backup_failed",
            f"{target}: the backup could not be written",
            "choose another place, or make room there, and run the same command again",
        ),
        partial_file(target) as corpus_copy,
        partial_file(audit) as audit_copy,
        partial_file(manifest_file) as manifest_copy,
    ):
        with open_reader(path) as corpus:
            corpus.copy_to(corpus_copy, target)
        # After the corpus, so that it has the row of each change that the corpus has.
        has_audit, head = _copy_audit(audit_path(path), audit_copy, target, warnings)
        with _checked(corpus_copy) as copy:
            policy = records.load_policy(copy)
            counts = corpus_counts(copy)._asdict()
        manifest = BackupManifest(
            **counts,
            created_at=iso_utc(datetime.now(UTC)),
            schema_version=latest_version(),
            policy_digest=policy.digest if policy else "",
            corpus=_described(corpus_copy, target),
            audit=_described(audit_copy, audit) if has_audit else None,
            audit_head=head,
        )
        manifest_copy.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        # Each name is on the disk before the next one, so that a power loss leaves nothing that
        # the next backup takes for a file of the user.
        rename_synced(manifest_copy, manifest_file)
        if has_audit:
            rename_synced(audit_copy, audit)
        if not rename_if_free(corpus_copy, target):
            raise _file_exists(target)
    workspace.record_event("backup", details={"documents": manifest.documents})
    files = (target, *([audit] if has_audit else ()), manifest_file)
    return BackupReport(
        location=str(target),
        files=[str(file) for file in files],
        manifest=manifest,
        warnings=warnings,
    )


def manifest_path(backup: Path) -> Path:
    """The manifest's file of a backup."""
    return backup.with_name(f"{backup.name}.manifest.json")


def _refuse_existing(target: Path) -> None:
    """Refuse a name that is taken. What a killed run left is free: it has no file of this name."""
    audit, manifest = audit_path(target), _read_manifest(target)
    described = manifest.audit.sha256 if manifest and manifest.audit else ""
    is_left = manifest is not None and (not is_there(audit) or sha256_of(audit) == described)
    for file in (target, *(() if is_left else (manifest_path(target), audit))):
        if is_there(file):
            raise _file_exists(file)


def _file_exists(path: Path) -> UsageError:
    problem = f"{path}: something with this name is there; it was not changed"
    step = "choose another name"
    return UsageError("backup_exists", problem, step)


def _copy_audit(path: Path, copy: Path, target: Path, warnings: list[str]) -> tuple[bool, str]:
    """Copy the audit. Return whether there is a copy, and the head if it is intact."""
    if not is_there(path):
        return False, ""
    try:
        with open_audit_reader(path) as log:
            log.copy_to(copy, target)
    except (CorpusCorrupt, WrongFile) as error:
        warnings.append(f"the audit is not in the backup: {error.message}")
        return False, ""
    verified = verify_audit(copy)
    if verified.problem is not None:
        warnings.append(f"the audit is in the backup as it is: {verified.problem.message}")
    return True, verified.head


@contextmanager
def _checked(copy: Path) -> Iterator[Corpus]:
    """Open a private copy of a corpus after a full check; sync it after the block.

    Raises:
        CorpusCorrupt: the check found problems.
        UsageError: ``replica_no_backup``.
    """
    with open_writer(copy, lock=False, replica=True) as corpus:
        if load_manifest(corpus) is not None:
            reason = "a copy of a replica would keep what its publisher purges"
            step = f"back up the corpus that it is published from; `{PULL}` brings a replica back"
            raise UsageError("replica_no_backup", reason, step)
        for problem in find_problems(corpus, deny_matcher(corpus)):
            reason = f"the corpus is damaged, so it cannot be backed up: {problem.message}"
            step = "run `rolebundle corpus doctor`"
            raise CorpusCorrupt("corpus_damaged", reason, step)
        yield corpus
    sync_file(copy)


def _described(file: Path, name: Path) -> BackedUpFile:
    return BackedUpFile(name=name.name, bytes=file.stat().st_size, sha256=sha256_of(file))


# -- restoring -------------------------------------------------------------------------------------


def restore_backup(workspace: Workspace, backup: Path, *, confirmed: bool = False) -> RestoreReport:
    """Verify a backup, and put it in the place of a corpus, which is kept under another name.

    Args:
        workspace: of the corpus file, which may be damaged or missing. It is closed.
        backup: a backup, or another corpus file without a manifest.
        confirmed: without it only report what would happen.

    Raises:
        UsageError: there is no backup, or it is the corpus itself; or one of them is a replica.
        CorpusCorrupt: the backup is damaged or incomplete. Nothing was changed.
        CorpusBusy: another process has the corpus open for writing. Nothing was changed.
        WrongFile: one of the two is not a corpus. Nothing was changed.
        StorageError: the corpus could not be replaced.
    """
    workspace.close()
    backup, path = (Path(os.path.realpath(file)) for file in (backup, workspace.path))
    if address_of(path):
        raise in_database_error(path)
    if not backup.is_file():
        raise UsageError("backup_missing", f"{backup}: there is no backup", "check the name")
    if path.exists() and path.samefile(backup):
        raise UsageError(
            "same_file", f"{backup}: is the corpus itself", "name the backup of this corpus"
        )
    is_replica, present = _present(path)
    if is_replica:
        problem = f"{path}: is a replica, which only `replica pull` changes"
        step = "name another file with --db"
        raise UsageError("replica_is_read_only", problem, step)
    manifest = _read_manifest(backup)
    if manifest is None and is_there(manifest_path(backup)):
        raise _unsound(backup, "its manifest cannot be read")
    audit = audit_path(path)
    with ExitStack() as stack:
        stack.enter_context(
            storage_errors(
                "restore_failed",
                f"{path}: the backup could not be copied here",
                "check the permissions of the corpus's folder and the space there, and run the "
                "same command again",
            )
        )
        folder = path.parent if confirmed else Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        corpus_copy = stack.enter_context(partial_file(folder / path.name))
        audit_copy = stack.enter_context(partial_file(folder / audit.name))
        copied, purges = _copy_backup(backup, manifest, corpus_copy)
        audit_state = _audit_to_use(manifest, audit)
        if audit_state == "restored" and manifest is not None and manifest.audit is not None:
            _copy_verified(audit_path(backup), audit_copy, manifest.audit.sha256, backup)
        report = RestoreReport(
            backup=str(backup),
            location=str(path),
            done=confirmed,
            created_at=manifest.created_at if manifest else "",
            documents=copied.documents,
            chunks=copied.chunks,
            replaced=None,
            audit=audit_state,
            purges_undone=len(present - purges),
        )
        if not confirmed:
            return report
        moment = datetime.now(UTC).strftime(_MOMENT)
        with folder_lock(path, exclusive=True):
            # First, so that the restored corpus never has an audit that is too old for it.
            if audit_state == "restored":
                replace_file(audit_copy, audit, AUDIT_FORMAT, moment)
            replaced = replace_file(corpus_copy, path, corpus_format(), moment)
    with open_reader(path) as corpus:
        Recorder(path).record_event(corpus, "restore", details={"documents": copied.documents})
    return report.model_copy(update={"replaced": str(replaced) if replaced else None})


def _present(path: Path) -> tuple[bool, set[str]]:
    """Whether the file to replace is a replica, and the ids of its purges, if it can be read."""
    with suppress(RolebundleError), open_reader(path, verify=False) as corpus:
        return bool(stored_manifest(corpus)), purge.purge_ids(corpus)
    return False, set()


def _copy_backup(
    backup: Path, manifest: BackupManifest | None, target: Path
) -> tuple[CorpusCounts, set[str]]:
    """Copy the corpus of a backup, migrate and check it. Return its sizes and ids of purges."""
    if manifest is not None:
        _copy_verified(backup, target, manifest.corpus.sha256, backup)
    else:
        try:
            with Corpus.open_read_only(backup, corpus_format()) as source:
                source.copy_to(target, target)
        except CorpusCorrupt as error:
            raise _unsound(backup, error.message) from error
    try:
        with _checked(target) as copy:
            return corpus_counts(copy), purge.purge_ids(copy)
    except CorpusCorrupt as error:
        raise _unsound(backup, error.message) from error


def _copy_verified(source: Path, target: Path, sha256: str, backup: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise _unsound(backup, f"{source.name} is missing") from None
    if sha256_of(target) != sha256:
        raise _unsound(backup, f"{source.name} is not what its manifest says")


def _unsound(backup: Path, problem: str) -> CorpusCorrupt:
    reason = f"{backup}: the backup cannot be trusted: {problem}; nothing was changed"
    step = "use an older backup, or repair the corpus: `rolebundle corpus doctor --repair`"
    return CorpusCorrupt("backup_damaged", reason, step)


def _read_manifest(backup: Path) -> BackupManifest | None:
    """The manifest of a backup, or ``None`` if there is none that can be read."""
    try:
        with manifest_path(backup).open("rb") as stream:
            return BackupManifest.model_validate_json(stream.read(_MAX_MANIFEST_BYTES))
    except (OSError, ValidationError):
        return None


def _audit_to_use(
    manifest: BackupManifest | None, present: Path
) -> Literal["kept", "restored", "none"]:
    """Whether the present audit stays. It does if it has all rows of the one in the backup."""
    if manifest is None or manifest.audit is None:
        return "kept" if is_there(present) else "none"
    with suppress(RolebundleError):
        if is_there(present) and verify_audit(present, manifest.audit_head).ok:
            return "kept"
    return "restored"


# -- copying between a file and a database ---------------------------------------------------------


def copy_to(workspace: Workspace, target: Path) -> dict[str, Any]:
    """Copy a corpus to a place that has none: a new file, or an empty database.

    Returns:
        Where it is, what it holds, and whether the audit was copied, for `corpus copy`.

    Raises:
        UsageError: there is no corpus, it is a replica, or the target is not empty.
        CorpusBusy, CorpusCorrupt, WrongFile, StorageError: it was not copied.
    """
    own_audit, audit = audit_path(workspace.path), audit_path(target)
    with open_reader(workspace.path) as source, open_writer(target) as corpus:
        corpus.before_commit = save_database_access
        with corpus.writing():
            # Nothing was ever stored in an empty corpus.
            if corpus_counts(corpus).generation or audit.exists():
                raise UsageError(
                    "target_not_empty", f"{target}: has a corpus already", "name a new one"
                )
            copy_corpus(source, corpus)
        counts = corpus_counts(corpus)
    if own_audit.exists():
        with (
            storage_errors(
                "audit_not_copied", f"{audit}: it cannot be written", "copy the audit yourself"
            ),
            # With its log, which copying the file alone would leave out.
            open_audit_reader(own_audit) as log,
            partial_file(audit) as partial,
        ):
            log.copy_to(partial, audit)
            rename_if_free(partial, audit)
    return {"location": str(target), **counts._asdict(), "audit": own_audit.exists()}
