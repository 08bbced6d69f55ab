"""`rolebundle corpus doctor --repair`: a new corpus from what can be trusted of a damaged one.

The new file takes the place of the damaged one after a full check, and the damaged one is kept.
Nothing is weakened: what cannot be trusted is not taken over, and without a policy that can be
trusted every agent is denied.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rolebundle.contracts.doctor import LostDocument, RepairReport
from rolebundle.contracts.document import iso_utc
from rolebundle.doctor import root_of
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import (
    CorpusCorrupt,
    RolebundleError,
    StorageError,
    UsageError,
    WrongFile,
)
from rolebundle.ingest.path_flags import ALL_LOST
from rolebundle.policy.access import deny_matcher
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.recording import Recorder
from rolebundle.storage.backup import page_problem, private_copy, replace_file
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.content.passages import chunk_texts
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.damage import salvage
from rolebundle.storage.damage.check import find_problems
from rolebundle.storage.damage.salvage import Salvaged
from rolebundle.storage.files.file_format import check_path
from rolebundle.storage.files.lock import FolderLock
from rolebundle.storage.files.partial import partial_file, sync_file
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.opening import (
    corpus_format,
    latest_version,
    open_reader,
    open_writer,
    schema_version,
)
from rolebundle.storage.records import path_flags, stored_policy
from rolebundle.storage.records.replica import PULL
from rolebundle.storage.records.stored_audit import StoredAudit, save_stored_audit

_BATCH = 1_000


def repair(path: Path) -> RepairReport:
    """Replace a damaged corpus by what can be saved of it. A sound one is left alone.

    Raises:
        UsageError: there is no corpus, or it is a replica.
        WrongFile: it belongs to another application, or has another schema.
        CorpusBusy: another process has it open for writing. Nothing was changed.
        StorageError: the new file cannot be written. Nothing was changed.
        CorpusCorrupt: it is empty, or nothing shows that it was a corpus; or the new file did not
            pass the check. Nothing was changed.
    """
    path = Path(os.path.realpath(path))
    lock = FolderLock(path, exclusive=True)
    try:
        if _is_sound(path):
            return RepairReport(location=str(path), repaired=False)
        if salvage.is_replica(path):
            raise UsageError(
                "replica_is_read_only",
                f"{path}: is a damaged replica; a repair would make another corpus of it",
                f"replace it by the one that is published now: `{PULL}`",
            )
        report = _repair(path)
    except OSError as error:
        raise StorageError(
            "repair_failed",
            f"{path}: the new file cannot be written beside it ({error.strerror})",
            "make room, or give yourself write permission to the folder",
        ) from error
    finally:
        lock.release()
    recorder = Recorder(path)
    with open_reader(path) as corpus:
        if stored_policy.has_policy(corpus):
            recorder.begin(corpus)
        recorder.note(
            corpus,
            "repair",
            details={"kept": report.documents, "lost": len(report.lost) + report.unnamed},
        )
    return report


def _is_sound(path: Path) -> bool:
    """Whether there is nothing to repair.

    Raises:
        CorpusCorrupt: it is empty.
        WrongFile: it belongs to another application, or has another schema.
    """
    try:
        check_path(path, corpus_format())
        with private_copy(path) as copy:
            with Corpus.open_read_only(copy, corpus_format()) as corpus:
                is_older = schema_version(corpus) < latest_version()
                if is_older and page_problem(corpus):
                    return False
            if is_older:
                raise WrongFile(
                    "older_schema",
                    f"{path}: has an older schema, which can be checked after its migration",
                    "run `rolebundle ingest` once with this version",
                )
            with open_writer(copy, lock=False, verify=False, replica=True) as corpus:
                return not find_problems(corpus, deny_matcher(corpus))
    except CorpusCorrupt as error:
        if error.code == "corpus_empty_file":
            raise
        return False
    except WrongFile:
        with TemporaryDirectory() as folder, open_writer(Path(folder) / "new.db") as new:
            if not salvage.has_own_schema(path, new):
                raise
        return False  # The header alone was damaged.


def _repair(path: Path) -> RepairReport:
    notes: list[str] = []
    with partial_file(path) as partial:
        old = salvage.open_damaged(path)
        if old is None and not salvage.shows_a_corpus(path):
            raise CorpusCorrupt(
                "beyond_repair",
                f"{path}: nothing can be read from it, and nothing shows that it was a corpus; it "
                "was not changed",
                "run `rolebundle corpus restore BACKUP`, or move it away and ingest again",
            )
        try:
            with open_writer(partial, lock=False) as new, salvage.copying(new):
                salvaged = _fill(old, new, path, notes)
        finally:
            if old is not None:
                old.close()
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
        sync_file(partial)
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        replaced = replace_file(partial, path, corpus_format(), "damaged", moment)
    return RepairReport(
        location=str(path),
        repaired=True,
        kept=str(replaced) if replaced else None,
        documents=counts.documents,
        chunks=counts.chunks,
        lost=[LostDocument(document_id=name, path=place) for name, place in salvaged.lost],
        unnamed=salvaged.unnamed,
        roots=roots,
        notes=notes,
    )


def _fill(old: SqliteFile | None, new: Corpus, path: Path, notes: list[str]) -> Salvaged:
    is_sealed = salvage.copy_rows(old, new) if old is not None else False
    salvaged = salvage.keep_proven_rows(old, new, is_sealed)
    if old is None:
        notes.append("nothing can be read from the file; the new corpus is empty")
    if not is_sealed:
        _restore_rules(old, new, path, salvaged, notes)
    _remove_bad_vectors(new)
    salvage.derive(new, deny_matcher(new))
    return salvaged


def _restore_rules(
    old: SqliteFile | None, new: Corpus, path: Path, salvaged: Salvaged, notes: list[str]
) -> None:
    """Policy and audit settings of a corpus whose small tables cannot be trusted."""
    now = iso_utc(datetime.now(UTC))
    has_record, is_required = _audit_of(path)
    policy = salvage.policy_of(old) if old is not None else None
    if policy is not None:
        stored_policy.save_policy(new, *policy)
    elif salvaged.had_policy or has_record:
        salvage.deny_everyone(new, now)
        notes.append(
            "the policy cannot be read: every agent is denied until `rolebundle policy set FILE`"
        )
    if salvaged.is_required or is_required:
        save_stored_audit(new, StoredAudit(True))
    notes += [
        "the embedding index is lost; if it is not the default, build it again: "
        f"rolebundle corpus embed --model {name}"
        for name in salvaged.indexes
    ]
    path_flags.save(new, ALL_LOST)
    notes.append(
        "the options --untrusted, --max-trust and --meta of earlier ingests are lost: each path "
        "is refused until it is ingested with these options, or with --max-trust authoritative"
    )
    notes.append(
        "approvals of manifests and receipts of purges are not taken over: their records cannot be "
        "trusted"
    )


def _audit_of(path: Path) -> tuple[bool, bool]:
    """Whether the audit has a record of a policy, and whether it requires records."""
    log = AuditLog(path)
    if not log.exists:
        return False, False
    try:
        has_record = next(log.rows(kind="scopes", limit=1), None) is not None
        return has_record, log.settings().mode == "required"
    except RolebundleError:
        return True, True


def _remove_bad_vectors(corpus: Corpus) -> None:
    """Remove vectors that were made of another text than that of their chunk."""
    for index in vector_index.all_indexes(corpus):
        after = 0
        while stored := vector_index.input_hashes(corpus, index, after, _BATCH):
            after = max(stored)
            texts = chunk_texts(corpus, list(stored))
            bad = [
                text.rowid
                for text in texts
                if stored[text.rowid] != input_hash(embedding_text(*text[1:]))
            ]
            salvage.remove_vectors(corpus, index, bad)
