"""A small folder of notes, with and without a corpus."""

import shutil
from pathlib import Path

import pytest

from support.commands import invoke
from support.source_tree import write_files

FILES = {
    "README.md": "# Notes of the boat club\n\nWhat the club has written down: boats, races, money.\n",
    "meetings/2026-03-01-board.md": "# Board\n\nBudget plan for the new jetty.\n",
    "meetings/2026-04-05-board.md": "# Board\n\nRelease of the booking calendar.\n",
    "meetings/2026-05-03-board.md": "# Board\n\nThe jetty again.\n",
    "decisions/0001-wood.md": "# Wood for the jetty\n\nSteel rusts, so wood.\n",
    "decisions/0002-calendar.md": "# A shared calendar\n\nOne calendar against double bookings.\n",
    "boats/gig.md": "# Gig\n\nFour oars, two of them repaired. The release lever sticks.\n",
    "boats/skiff.md": "# Skiff\n\nOne oar is missing.\n",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", FILES)


@pytest.fixture(scope="session")
def _ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("authoring")
    notes = write_files(place / "notes", FILES)
    db = place / "c.db"
    assert invoke("ingest", notes, "--workers", "1", "--db", db).code == 0
    return db


@pytest.fixture
def corpus(_ingested: Path, tmp_path: Path) -> Path:
    """A copy of a corpus of the notes, without a manifest."""
    return Path(shutil.copy(_ingested, tmp_path / "c.db"))
