"""A folder that is made once, and that every test of a module may change."""

import shutil
from collections.abc import Callable
from pathlib import Path


class Template:
    """Puts a folder back as it was made, at the same path.

    A copy in another place would not do for what was ingested: a corpus has the paths of its files.

    Args:
        place: an empty folder of its own.
        make: fills the folder that it gets.
    """

    def __init__(self, place: Path, make: Callable[[Path], object]) -> None:
        self._folder, self._saved = place / "made", place / "saved"
        self._folder.mkdir()
        make(self._folder)
        shutil.copytree(self._folder, self._saved)

    def put_back(self) -> Path:
        """The folder, with nothing in it but what was made."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._saved, self._folder)
        return self._folder
