"""`rolebundle corpus doctor --repair`: a new corpus from what can be trusted of a damaged one.

The new file takes the place of the damaged one after a full check, and the damaged one is kept.
The next ingest reads all files again, and embeds them. Nothing is weakened: what cannot be trusted
is not taken over, and without a policy that can be trusted every agent is denied.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import RepairReport
from rolebundle.doctor import root_of
from rolebundle.errors import CorpusCorrupt, RolebundleError, UsageError, storage_errors
from rolebundle.ingest.authority import ALL_LOST
from rolebundle.policy.audit import AuditLog, Recorder
from rolebundle.policy.policy_change import deny_matcher
from rolebundle.storage import records as path_flags
from rolebundle.storage import records as stored_policy
from rolebundle.storage import salvage, store
from rolebundle.storage.backup import private_copy, replace_file
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.file import folder_lock, partial_file
from rolebundle.storage.opening import corpus_format, open_reader
from rolebundle.storage.publications import PULL
from rolebundle.storage.records import StoredAudit, save_stored_audit
from rolebundle.storage.sqlite import SqliteFile
from rolebundle.storage.writing import open_writer


def repair(path: Path) -> RepairReport:
    """Replace a damaged corpus by what can be saved of it. A sound one is left alone.

    Raises:
        UsageError: there is no corpus, or it is a replica.
        WrongFile: it belongs to another application, or has another schema.
        CorpusBusy: another process has it open for writing. Nothing was changed.
        StorageError: the new file cannot be written. Nothing was changed.
        CorpusCorrupt: nothing can be read from it, or the new file did not pass the check. Nothing
            was changed.
    """
    path = Path(os.path.realpath(path))
    with (
        storage_errors(
            "repair_failed",
            f"{path}: the new file cannot be written beside it",
            "make room, or give yourself write permission to the folder",
        ),
        folder_lock(path, exclusive=True),
    ):
        if _is_sound(path):
            return RepairReport(location=str(path), repaired=False)
        if salvage.is_replica(path):
            raise UsageError(
                "replica_is_read_only",
                f"{path}: is a damaged replica; a repair would make another corpus of it",
                f"replace it by the one that is published now: `{PULL}`",
            )
        report = _repair(path)
    recorder = Recorder(path)
    with open_reader(path) as corpus:
        if stored_policy.has_policy(corpus):
            recorder.begin(corpus)
        details = {"kept": report.documents, "lost": len(report.lost)}
        recorder.note(corpus, "repair", details=details)
    return report


def _is_sound(path: Path) -> bool:
    """Whether there is nothing to repair.

    Raises:
        CorpusCorrupt: it is empty.
        WrongFile: it belongs to another application, or has another schema.
    """
    try:
        open_reader(path, verify=False).close()
        with (
            private_copy(path) as copy,
            open_writer(copy, lock=False, verify=False, replica=True) as corpus,
        ):
            return not find_problems(corpus, deny_matcher(corpus))
    except CorpusCorrupt as error:
        if error.code == "corpus_empty_file":
            raise
        return False


def _repair(path: Path) -> RepairReport:
    old = salvage.open_damaged(path)
    if old is None:
        raise CorpusCorrupt(
            "beyond_repair",
            f"{path}: nothing that this version stored can be read from it; it was not changed",
            "run `rolebundle corpus restore BACKUP`, or move it away and ingest again",
        )
    with old, partial_file(path) as partial:
        with open_writer(partial, lock=False) as new, salvage.copying(new):
            distrusted = salvage.copy_rows(old, new)
            lost = salvage.remove_unproven(new)
            notes = _restore_rules(old, new, path, distrusted)
            salvage.derive(new, deny_matcher(new))
        with open_writer(partial, lock=False) as new:
            problems = find_problems(new, deny_matcher(new))
            if problems:
                raise CorpusCorrupt(
                    "repair_failed",
                    f"{path}: what can be saved does not pass the check ({problems[0].message}); "
                    "nothing was changed",
                    "run `rolebundle corpus restore BACKUP`, or ingest into a new file with --db",
                )
            counts = corpus_counts(new)
            roots = sorted(
                {str(root_of(place, name)) for place, (name, *_) in store.known_files(new).items()}
            )
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        replaced = replace_file(partial, path, corpus_format(), "damaged", moment)
    return RepairReport(
        location=str(path),
        repaired=True,
        kept=str(replaced) if replaced else None,
        documents=counts.documents,
        chunks=counts.chunks,
        lost=[{"document_id": name, "path": place} for name, place in lost],
        roots=roots,
        notes=notes,
    )


def _restore_rules(old: SqliteFile, new: Corpus, path: Path, distrusted: set[str]) -> list[str]:
    """Replace the small tables that cannot be trusted by what allows less. Return notes."""
    notes = []
    if distrusted:
        names = ", ".join(sorted(distrusted))
        notes.append(f"not taken over, because it is not what was stored: {names}")
    if "policy" in distrusted:
        salvage.deny_everyone(new, iso_utc(datetime.now(UTC)))
        notes.append(
            "the policy cannot be trusted: every agent is denied until `rolebundle policy set FILE`"
        )
    if "audit_state" in distrusted and (salvage.required_records(old) or _requires_records(path)):
        save_stored_audit(new, StoredAudit(True))
    if "path_flags" in distrusted:
        path_flags.save_path_flags(new, ALL_LOST)
        notes.append(
            "the options --untrusted, --max-trust and --meta of earlier ingests are lost: each "
            "path is refused until it is ingested with these options, or with --max-trust "
            "authoritative"
        )
    if "embedding_index" in distrusted:
        notes.append(
            "the embedding index is lost; if it is not the default, build it again: `rolebundle "
            "corpus embed --model PROVIDER:MODEL`"
        )
    return notes


def _requires_records(path: Path) -> bool:
    """Whether the audit itself says that each answer needs a record, or cannot be read."""
    log = AuditLog(path)
    try:
        return log.exists and log.settings().mode == "required"
    except RolebundleError:
        return True
