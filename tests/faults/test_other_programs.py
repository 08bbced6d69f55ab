"""Another SQLite program that opens and closes the file takes nothing from who writes to it."""

import subprocess
import sys
from pathlib import Path

from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.corpora import document, fill

COUNT = """
import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM document"))
"""


def counted_by_another_program(db: Path) -> str:
    command = [sys.executable, "-c", COUNT, db]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_another_program_that_closes_the_file_hides_nothing_that_is_written_later(
    tmp_path: Path,
) -> None:
    db = tmp_path / "c.db"
    with open_writer(db) as corpus:
        fill(corpus, [document("before", ["It is here."])])
        # SQLite's locks on a file end if anything in the process opens and closes it.
        open_reader(db).close()
        assert counted_by_another_program(db) == "(1,)"
        fill(corpus, [document("after", ["It is here, too."])])
        assert counted_by_another_program(db) == "(2,)"
