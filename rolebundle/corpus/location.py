"""Where the corpus file lies."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "ROLEBUNDLE_DB"


def corpus_path(option: str | os.PathLike[str] | None = None) -> Path:
    """``option``, else ``$ROLEBUNDLE_DB``, else a file in the platform's user data folder."""
    named = option or os.environ.get(ENVIRONMENT)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_data_path

    return user_data_path("rolebundle", appauthor=False) / "corpus.db"
