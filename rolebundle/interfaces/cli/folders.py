"""The corpora of ``--in FOLDER``: found by the folders' real paths, and kept up to date.

Each is a folder of its own in the user's data folder, with the corpus and what belongs to it. The
file ``seen.json`` says which files there were when they were last read in full; a call compares
them with those of now, and reads a few small ones itself. A process in the background reads more.
What was skipped, and what of it no call has named yet, is in ``skipped.json``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from textwrap import shorten
from threading import Event, Thread
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from rolebundle import system
from rolebundle.contracts.ingest import LOST
from rolebundle.embedding.registry import IN_PROCESS
from rolebundle.errors import CorpusBusy, RolebundleError, UsageError
from rolebundle.ingest import indexes
from rolebundle.ingest.walk import reason_for_name
from rolebundle.interfaces.cli.output import print_note, progress_bar
from rolebundle.interfaces.layout import on_one_line
from rolebundle.storage import roots
from rolebundle.storage.corpus import corpus_counts
from rolebundle.storage.file import heartbeat_path, indexing_path, is_held, try_lock, write_whole
from rolebundle.storage.opening import open_reader
from rolebundle.storage.stored_values import grouped
from rolebundle.storage.vector_index import active_index
from rolebundle.text.words import counted, first_of, language_of, stems_of

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.admin.indexes import Indexing
    from rolebundle.contracts.ingest import IngestReport
    from rolebundle.ingest.options import IngestOptions

LOOK_SECONDS = 0.3
"""How long a call looks for changes, and waits for their reading."""
SERVER_SECONDS = 10.0
"""How long a server waits for the first reading: hosts of agents give up on slow ones."""
_FRESH_SECONDS = 300.0
"""How long a folder that is too large to be looked through counts as read."""
_AWAITED_PASSAGES = 200
"""The first answer from so few waits until a contextual model has embedded them, if it does."""
_AWAITED_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_RETRY_SECONDS = 10.0
_FEW, _FEW_BYTES = 8, 200_000
"""How many changed files, of what size in all, a call reads itself."""
_MAX_MATCHED = 2_000
_MAX_NAMED = 3
_MAX_SKIPPED = 5
_REASON_CHARS = 100
_NO_NAME = re.compile(r"(?:img|image|scan|dsc|doc|document|dokument|page|seite|[\W\d_])+", re.I)
"""The name of a scan that says nothing."""
_PROGRAM = ":program"
"""The name, and the size of all code, of this program: another version may read files otherwise."""
Files = dict[str, list[int]]
"""Path of a file → its size in bytes, and the time of its last change in nanoseconds."""


def corpora_folder() -> Path:
    """The folder that has a folder for each corpus."""
    return user_data_path("rolebundle", appauthor=False) / "folders"


def corpus_of(folders: Sequence[Path]) -> Path:
    """The corpus file of folders, whether it is there or not; their order does not matter."""
    places = sorted({os.path.realpath(folder) for folder in folders})
    digest = sha256(os.fsencode("\0".join(places))).hexdigest()[:12]
    name = re.sub(r"[^\w.-]+", "-", Path(places[0]).name)[:40]
    return corpora_folder() / f"{name}-{digest}" / "corpus.db"


def bring_up_to_date(corpus: Path, folders: Sequence[Path], admin: Callable[[], Admin]) -> str:
    """Read folders for the first time, or read or begin to read what changed.

    An answer can be given afterwards from what the corpus has, if the folders are gone or the
    corpus cannot be written, too.

    Args:
        corpus: what :func:`corpus_of` names for them.
        folders: folders of this user.
        admin: makes an admin of the corpus.

    Returns:
        What is not read yet; empty if everything is. It is printed, too.

    Raises:
        UsageError: ``no_folder``, ``folder_refused``.
        RolebundleError: the first reading failed, and there is nothing to answer from.
    """
    deadline = monotonic() + LOOK_SECONDS
    before = _seen(corpus)
    if before is None:
        _read_first(corpus, folders, admin)
        return ""
    try:
        _check(folders)
    except UsageError as error:
        print_note(f"note: {error.message}; the answer is from what was read before")
        return ""
    _print_later_skipped(corpus)
    now = _files_in(folders, deadline)
    if now == before and not _needs_embedding(corpus):
        return ""
    changes = f"the folder could not be looked through in {LOOK_SECONDS:g} s"
    if now is not None:
        changes = _changed_note(before, now)
        # What is gone is changed, too.
        changed = [path for path in {**before, **now} if before.get(path) != now.get(path)]
        if changed and _PROGRAM not in changed and _are_few(changed, now):
            with suppress(RolebundleError, OSError):
                if read(corpus, folders, admin, indexes.no_progress, is_brief=True):
                    _print_later_skipped(corpus)
                    return ""
    elif (age := time() - corpus.with_name("seen.json").stat().st_mtime) < _FRESH_SECONDS:
        print_note(f"note: {changes}; it was read {age:.0f} s ago")
        return changes
    reader = _start_reader(corpus, folders)
    with suppress(subprocess.TimeoutExpired):
        if reader and reader.wait(max(0.0, deadline - monotonic())) == 0:
            _print_later_skipped(corpus)
            return ""
    if changes:
        print_note(f"note: {changes}; reading goes on in the background")
    return changes


def _changed_note(before: Files, now: Files) -> str:
    paths = [p for p, state in now.items() if before.get(p) != state and p != _PROGRAM]
    named = first_of([Path(path).name for path in paths], _MAX_NAMED)
    return f"{counted(len(paths), 'changed file')} not read yet ({named})" if paths else ""


def _are_few(changed: Collection[str], now: Files) -> bool:
    """Whether changes are read in about the time of a look: without a process for the files."""
    # They load the readers, and most calls find no change.
    from rolebundle.ingest.manifests import FileDefaults
    from rolebundle.ingest.prepare import is_plain
    from rolebundle.ingest.walk import FileEntry

    files = [FileEntry(p, p, now[p][0], now[p][1], FileDefaults()) for p in changed if p in now]
    is_small = len(changed) <= _FEW and sum(file.size for file in files) <= _FEW_BYTES
    # Others than documents may change what is read of all files.
    others = [path for path in changed if Path(path).name[0] == "." or path.endswith(".toml")]
    return is_small and not others and all(map(is_plain, files))


def _needs_embedding(corpus: Path) -> bool:
    """Whether a contextual model must still embed: it is newly installed, or was interrupted."""
    with suppress(RolebundleError), open_reader(corpus) as reader:
        active = active_index(reader)
        is_contextual = active and active.identity.model.provider in IN_PROCESS
        if is_contextual and not indexes.count_waiting(reader):
            return False  # To look at the languages of the text takes longer.
        spec, _ = indexes.contextual_model(reader)
        is_due = spec is not None and indexes.is_due(reader, spec)
        return is_due and not is_held(indexing_path(corpus))
    return False


def unread_note(
    corpus: Path, folders: Sequence[Path], changes: str | None, task: str, is_thin: bool
) -> str:
    """A note on what was not read: changed files, and skipped files that may be about the task.

    These have its words in their names, or are scans whose names say nothing, or were read before.

    Args:
        corpus: as for :func:`bring_up_to_date`.
        folders: as ``corpus``.
        changes: what that returned; ``None`` to look now.
        task: what is asked.
        is_thin: whether there is little evidence for it, so that scans are named.
    """
    if changes is None:
        before, now = _seen(corpus), _files_in(folders, monotonic() + LOOK_SECONDS)
        changes = _changed_note(before, now or {}) if before else "the folder is still being read"
    language, names = language_of(task), [*_skipped(corpus)[0].items()][:_MAX_MATCHED]
    words = {*stems_of(task, language).content}
    matched = [
        (len(words & {*stems_of(Path(path).stem, language).content}), f"{path} ({reason})")
        for path, reason in names
    ]
    most = max([1, *(number for number, _ in matched)])
    scans = [
        f"{path} (no text)"
        for path, reason in names
        if is_thin and reason.startswith("no text") and _NO_NAME.fullmatch(Path(path).stem)
    ]
    lost = [f"{path} ({reason})" for path, reason in names if reason.startswith(LOST)]
    others = [text for number, text in matched if number == most and text not in lost]
    named = first_of([*lost, *others, *scans], _MAX_NAMED)
    note = "; ".join(filter(None, [changes, f"not read: {named}" if named else ""]))
    if note:
        from rolebundle.scan.confidential import without_secrets  # It loads re2.

        note = without_secrets(on_one_line(note))
    return note


def _read_first(corpus: Path, folders: Sequence[Path], admin: Callable[[], Admin]) -> None:
    try:
        with progress_bar() as progress:
            report = read(corpus, folders, admin, progress, again=False)
    except (RolebundleError, OSError) as error:
        if not corpus.exists() or isinstance(error, UsageError):
            raise
        print_note(f"note: {error}; the answer is from what was read before")
        return
    if report is not None:
        reasons = _reasons(report)
        skipped = f", {len(reasons)} skipped" if reasons else ""
        print_note(f"read {counted(report.documents, 'document')}{skipped}, into {corpus}")
        _print_skipped(reasons)
        with open_reader(corpus) as reader:
            spec, _ = indexes.contextual_model(reader)
            better = spec.name if spec is not None and indexes.is_due(reader, spec) else ""
            missing = indexes.missing_model(reader)
        process = _start_reader(corpus, folders)
        if better and process is not None and report.chunks <= _AWAITED_PASSAGES:
            with suppress(subprocess.TimeoutExpired):
                better = better if process.wait(_AWAITED_SECONDS) else ""
        if not report.documents:
            print_note("note: the folder has no file that can be read")
        elif missing:
            print_note(f"note: {missing}")
        elif better:
            print_note(f"note: {better} embeds in the background; then answers improve")


def read(
    corpus: Path,
    folders: Sequence[Path],
    admin: Callable[[], Admin],
    progress: Callable[[str, int, int], None],
    *,
    again: bool = True,
    is_brief: bool = False,
) -> IngestReport | None:
    """Read folders into their corpus, in one process at a time.

    Return ``None`` if another process has read them meanwhile, unless it is to be done ``again``;
    if it is to be ``is_brief``, also if another one reads them now.
    """
    from rolebundle.ingest.options import IngestOptions

    _check(folders)
    for folder in (corpora_folder(), corpus.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # An overlay may have been written first.
    while True:
        with try_lock(corpus.with_name("reading.lock")) as is_alone:
            if is_alone:
                seen, workers = _seen(corpus), os.cpu_count() or 1
                if seen is not None and not again:
                    return None
                known = seen if is_brief and seen else {}
                options = IngestOptions(wait=False, workers=workers, seen=known)
                with admin() as owner:
                    work = owner.update if seen else partial(owner.ingest, [*folders])
                    return _run_ingest(corpus, folders, partial(work, progress=progress), options)
        if is_brief:
            return None
        sleep(_PAUSE_SECONDS)


def _run_ingest(
    corpus: Path,
    folders: Sequence[Path],
    work: Callable[[IngestOptions], IngestReport],
    options: IngestOptions,
) -> IngestReport:
    """Run an ingest, store which files it saw and skipped, and return its report."""
    # Before they are read: what changes meanwhile is looked at again.
    files, is_first = _files_in(folders) or {}, _seen(corpus) is None
    report = work(options)
    seen, places = options.seen, [folder.resolve() for folder in folders]
    passed_over = {
        path: reason
        for path, reason in (_skipped(corpus)[0] if seen else {}).items()
        if all(seen.get(at) == files.get(at) for at in (str(p / path) for p in places))
    }
    _remember_skipped(corpus, passed_over | _reasons(report), are_named=is_first)
    write_whole(corpus.with_name("seen.json"), json.dumps(files).encode())
    return report


def _reasons(report: IngestReport) -> dict[str, str]:
    """The path of each file that was skipped, and why: one of each reason, then the others.

    What is left out on purpose is not among them.
    """
    skipped = [entry for entry in report.skipped if entry.code != "ignored"]
    reasons = {entry.path: entry.message.removeprefix(f"{entry.path}: ") for entry in skipped}
    by_reason = grouped((reason, path) for path, reason in reasons.items())
    turns = (path for turn in zip_longest(*by_reason.values()) for path in turn if path)
    return {path: reasons[path] for path in turns}


def _print_skipped(reasons: Mapping[str, str]) -> None:
    for path, reason in [*reasons.items()][:_MAX_SKIPPED]:
        why = shorten(reason, _REASON_CHARS, placeholder="…")
        print_note(on_one_line(f"skipped {path}: {why}"))
    if reasons:
        more = len(reasons) - _MAX_SKIPPED
        print_note(f"{f'and {more} more; ' if more > 0 else ''}`rolebundle ingest` lists all")


def _remember_skipped(corpus: Path, reasons: Mapping[str, str], *, are_named: bool) -> None:
    """Keep what was skipped, and what of it no call has named yet."""
    known, waiting = _skipped(corpus)
    reasons = {p: known[p] if known.get(p) == LOST + why else why for p, why in reasons.items()}
    new = {path: reason for path, reason in reasons.items() if known.get(path) != reason}
    waiting = {path: reason for path, reason in waiting.items() if path in reasons} | new
    kept = {"known": reasons, "waiting": {} if are_named else waiting}
    write_whole(corpus.with_name("skipped.json"), json.dumps(kept).encode())


def _print_later_skipped(corpus: Path) -> None:
    """Name what was skipped in the background: once, or each time if it had been read before."""
    known, waiting = _skipped(corpus)
    lost = {path: reason for path, reason in known.items() if reason.startswith(LOST)}
    if shown := {**lost, **waiting}:
        print_note(f"{counted(len(shown), 'file' if shown == lost else 'new file')} skipped")
        _print_skipped(shown)
    if waiting:
        with suppress(OSError):
            kept = json.dumps({"known": known, "waiting": {}})
            write_whole(corpus.with_name("skipped.json"), kept.encode())


def _skipped(corpus: Path) -> tuple[dict[str, str], dict[str, str]]:
    with suppress(OSError, ValueError):
        kept = json.loads(corpus.with_name("skipped.json").read_bytes())
        return kept["known"], kept["waiting"]
    return {}, {}


def follow(
    corpus: Path, folders: Sequence[Path], admin: Callable[[], Admin], indexing: Indexing
) -> None:
    """Keep the corpus of folders up to date while a server runs, in a thread of its own.

    It returns when they have been read once, or after some seconds.
    """
    is_ready, is_new = Event(), _seen(corpus) is None

    def work() -> None:
        try:
            if is_new:
                _read_first(corpus, folders, admin)
            is_ready.set()
            while True:
                try:
                    watcher = admin().watcher(print_note, Event(), indexing=indexing)
                    watcher.update = partial(_run_ingest, corpus, folders, watcher.update)
                    watcher.run()
                except CorpusBusy:  # Another server watches.
                    sleep(_RETRY_SECONDS)
        except (RolebundleError, OSError) as error:
            print_note(f"warning: changes of the folder are not read any more: {error}")
        finally:
            is_ready.set()

    if is_new:
        _check(folders)
    Thread(target=work, name="folders", daemon=True).start()
    if is_new and not is_ready.wait(SERVER_SECONDS):
        print_note("note: the folder is still being read; answers are from what is read")


def corpora() -> Iterator[dict[str, object]]:
    """The corpora: their folders and number of documents, if they can be read, and their files."""
    for path in sorted(corpora_folder().glob("*/corpus.db")):
        known: dict[str, object] = {}
        with suppress(RolebundleError), open_reader(path) as corpus:
            known["folders"] = [root.location for root in roots.load(corpus)]
            known["documents"] = corpus_counts(corpus).documents
        yield {**known, "corpus": str(path)}


def _check(folders: Sequence[Path]) -> None:
    """Refuse what is no folder, and what a person hardly means to read as a whole."""
    home, data = Path.home().resolve(), user_data_path("rolebundle", appauthor=False).resolve()
    for folder in folders:
        real = Path(os.path.realpath(folder))
        step = "name a folder with documents below it"
        if not real.is_dir():
            reason, step = "there is no such folder", "check the name"
            if real.exists():
                reason, step = "is a file", f"name its folder, {real.parent}"
            raise UsageError("no_folder", f"--in {folder}: {reason}", step)
        owner = real.stat().st_uid
        if real == Path(real.anchor) or home.is_relative_to(real):
            reason = "it is a home folder or contains one, with settings, keys and caches"
        elif data.is_relative_to(real) or real.is_relative_to(data):
            reason = "rolebundle keeps its corpora there"
        elif system.is_foreign(owner):
            reason = f"it belongs to another user (number {owner})"
            step = f"copy it, or run `rolebundle ingest {folder} --db FILE`"
        else:
            continue
        raise UsageError("folder_refused", f"--in {folder}: {reason}", step)


def _files_in(folders: Sequence[Path], deadline: float = float("inf")) -> Files | None:
    """The files below folders, but for hidden ones, and the size of this program.

    ``None`` if that lasts until the deadline.
    """
    package = Path(__file__).parents[2]
    code = (*package.rglob("*.py"), *package.rglob("*.toml"))
    files: Files = {_PROGRAM: [sum(file.stat().st_size for file in code), 0]}
    waiting = [os.path.realpath(folder) for folder in folders]
    while waiting:
        if monotonic() > deadline:
            return None
        with suppress(OSError), os.scandir(waiting.pop()) as listing:
            entries = [*listing]
            names = {entry.name for entry in entries}
            for entry in entries:
                # Files such as .gitignore decide what is read.
                if entry.name[0] == "." and not entry.name.endswith("ignore"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if not reason_for_name(entry.name, names, is_folder=True):
                        waiting.append(entry.path)
                    continue
                status = entry.stat(follow_symlinks=False)
                files[entry.path] = [status.st_size, status.st_mtime_ns]
    return files


def _seen(corpus: Path) -> Files | None:
    """The files when they were last read in full; ``None`` if they never were."""
    with suppress(OSError, ValueError):
        files: Files = json.loads(corpus.with_name("seen.json").read_bytes())
        return files if corpus.exists() else None
    return None


def _start_reader(corpus: Path, folders: Sequence[Path]) -> subprocess.Popen[bytes] | None:
    """A process that reads what changed, and outlives this one; ``None`` if one does already."""
    # A server reads them, too.
    if is_held(corpus.with_name("reading.lock")) or is_held(heartbeat_path(corpus)):
        return None
    places = [part for folder in folders for part in ("--in", os.path.realpath(folder))]
    with suppress(OSError):
        return system.start_detached([sys.executable, "-m", "rolebundle", "ingest", *places])
    return None
