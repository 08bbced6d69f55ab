"""The paths of the corpus file and of the files beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from rolebundle.errors import UsageError

ENVIRONMENT = "ROLEBUNDLE_DB"
OVERLAYS_SUFFIX = ".overlays"
PUBLISHED_SUFFIX = ".published"
PUBLISHED_MANIFEST = "replica-manifest.json"
"""The manifest of a replica that is published to a folder."""
REPLICA = "replica.db"
"""The name of a staged replica."""


def corpus_path(option: str | os.PathLike[str] | None = None) -> Path:
    """``option``, else ``$ROLEBUNDLE_DB``, else a file in the platform's user data folder.

    Raises:
        UsageError: a name that SQLite cannot open, or an empty one.
    """
    if option == "":
        # That of an unset variable: it must not mean another corpus.
        raise UsageError(
            "bad_db_name",
            "--db: the name of the corpus file is empty",
            "name a file, or leave it out",
        )
    named = option or os.environ.get(ENVIRONMENT)
    if named:
        text = os.fspath(named)
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise UsageError(
                "bad_db_name",
                f"{text!r}: the corpus file's name must be text",
                "choose another name for the file",
            )
        return Path(os.path.expanduser(text))  # noqa: PTH111 - expanduser() of Path may raise
    from platformdirs import user_data_path

    return user_data_path("rolebundle", appauthor=False) / "corpus.db"


def audit_path(corpus: Path) -> Path:
    """The audit's file of a corpus."""
    return _beside(corpus, "{}.audit")


def overlays_path(corpus: Path) -> Path:
    """The folder of the corpus's own overlays."""
    return _beside(corpus, "{}" + OVERLAYS_SUFFIX)


def published_folder(corpus: Path) -> Path:
    """The private folder with the last replica of each target."""
    return _beside(corpus, "{}" + PUBLISHED_SUFFIX)


def staged_replica(corpus: Path, target: str) -> Path:
    """The last replica of a target, in a folder of its own with what its transport keeps there."""
    name = sha256(target.encode()).hexdigest()[:16]
    return published_folder(corpus) / name / REPLICA


def expected_manifest(replica: Path) -> Path:
    """The manifest of the replica that is to come, after the one at hand was erased."""
    return _beside(replica, ".{}.expected")


def indexing_path(corpus: Path) -> Path:
    """The lock of the process that builds the contextual index."""
    return _beside(corpus, ".{}.indexing")


def heartbeat_path(corpus: Path) -> Path:
    """The file in which `watch` says what it does.

    Its name begins with a dot, so that no ingest takes it in if the corpus lies in a root.
    """
    return _beside(corpus, ".{}.watch")


def _beside(corpus: Path, form: str) -> Path:
    """A path beside a corpus, named like it. Links are resolved: it is beside the file itself."""
    # A loop of links is reported when the corpus is opened.
    with suppress(OSError, RuntimeError):
        corpus = corpus.resolve()
    return corpus.with_name(form.replace("{}", corpus.name))


def is_there(path: Path) -> bool:
    """Whether something has this name, readable or not.

    False only if there is certainly nothing. An audit that cannot be read must not be treated as
    one that was never turned on.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
