"""`rolebundle corpus doctor --repair`: the indexes of a corpus are made again from its documents.

Everything else has no second copy in the file: a corpus with other damage is not changed.
"""

from __future__ import annotations

from pathlib import Path

from rolebundle.contracts.upkeep import RepairReport
from rolebundle.errors import CorpusCorrupt
from rolebundle.policy.access import deny_matcher
from rolebundle.policy.audit import Recorder
from rolebundle.storage.check import IN_INDEXES, find_problems, rebuild_indexes
from rolebundle.storage.writing import open_writer


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
