"""Copying a corpus, with its audit, between a file and a database."""

from __future__ import annotations

from pathlib import Path

from rolebundle.contracts.upkeep import CopyReport
from rolebundle.errors import UsageError, storage_errors
from rolebundle.policy.policy_change import save_database_access
from rolebundle.storage.audit import open_audit_reader
from rolebundle.storage.backup import copy_database
from rolebundle.storage.copying import copy_corpus, is_empty
from rolebundle.storage.corpus import corpus_counts
from rolebundle.storage.file import audit_path, partial_file, rename_if_free
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace


def copy_to(workspace: Workspace, target: Path) -> CopyReport:
    """Copy a corpus to a place that has none: a new file, or an empty database.

    Raises:
        UsageError: there is no corpus, it is a replica, or the target is not empty.
        CorpusBusy, CorpusCorrupt, WrongFile, StorageError: it was not copied.
    """
    audits = audit_path(workspace.path), audit_path(target)
    with open_reader(workspace.path) as source, open_writer(target) as corpus:
        corpus.before_commit = save_database_access
        with corpus.writing():
            if not is_empty(corpus) or audits[1].exists():
                raise UsageError(
                    "target_not_empty", f"{target}: has a corpus already", "name a new one"
                )
            copy_corpus(source, corpus)
        counts = corpus_counts(corpus)
    if audits[0].exists():
        with (
            storage_errors(
                "audit_not_copied", f"{audits[1]}: it cannot be written", "copy the audit yourself"
            ),
            # With its log, which copying the file alone would leave out.
            open_audit_reader(audits[0]) as log,
            partial_file(audits[1]) as partial,
        ):
            copy_database(log, partial, audits[1])
            rename_if_free(partial, audits[1])
    return CopyReport(location=str(target), **counts._asdict(), audit=audits[0].exists())
