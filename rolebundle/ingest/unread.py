"""Files of the roots that the corpus does not have as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rolebundle.errors import RolebundleError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.readers import kind_of
from rolebundle.ingest.roots import plan_run
from rolebundle.storage import roots
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.store import known_sizes
from rolebundle.text.words import language_of, stems_of


def unread_files(
    corpus: Corpus, task: str, are_reachable: Callable[[Sequence[str]], bool]
) -> Iterator[str]:
    """The files that may have what the corpus has not, each with the reason.

    That is a file that is not in the corpus and has a word of the task in its path, or one whose
    size has changed.

    Args:
        corpus: the whole corpus, open for reading.
        task: what nothing was found for.
        are_reachable: whether the file system answers for these places in time.
    """
    known, language = known_sizes(corpus), language_of(task)
    stored = roots.load(corpus)
    starts = [root.location for root in stored]
    # To walk more files would take longer than the answer.
    if len(known) > 20_000 or not are_reachable(starts):
        return
    try:
        plan, _ = plan_run(corpus, stored, [*map(Path, starts)], IngestOptions(), {})
    except RolebundleError:
        return  # An ingest says what is wrong.
    words = {*stems_of(task, language).content}
    for file in (file for visit in plan.visits for file in visit.files):
        if known.get(file.location, file.size) != file.size:
            yield f"{file.path} has changed"
        elif file.location in known or kind_of(file.path):
            continue  # An ingest reads no images and archives.
        elif words & {*stems_of(file.path, language).content}:
            yield f"{file.path} is not in the corpus"
