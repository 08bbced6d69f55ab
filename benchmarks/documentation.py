"""Gather a corpus of real documentation from Debian packages, and questions about it.

Run: python benchmarks/documentation.py [FOLDER]

It copies the files to a working folder and prints what there is. The other benchmarks do the same
before they measure.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

PACKAGES = (
    "linux-doc-6.1",
    "postgresql-doc-15",
    "python3.11-doc",
    "rust-doc",
    "perl-doc",
    "git-doc",
)
DOCUMENTATION_SUFFIXES = frozenset({".html", ".txt", ".rst", ".pod", ".yaml"})
"""The other files of the packages are scripts, style sheets, fonts and pictures."""
MANUAL_FOLDER = "/usr/share/man/"
QUESTIONS = Path(__file__).with_name("questions.txt")
_COMPLETE_MARKER = "gathered"

# As the command line does, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Missing(SystemExit):
    """Something that the benchmarks need is not on this machine. It ends them with its message."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """A benchmark's working folder: the gathered files and the corpus files."""

    folder: Path
    files: Path
    count: int
    size: int

    def corpus(self, name: str) -> Path:
        """The path of the corpus file ``name``."""
        return self.folder / f"{name}.db"


def gather(folder: Path, sample: float = 1.0) -> Workplace:
    """Copy the packages' documentation to ``folder``, unless that was done before.

    Args:
        folder: the working folder; each sample has its own folder in it.
        sample: the share of the documentation, from 0 to 1. Files are chosen by a hash of their
            path, so a smaller sample is a part of every larger one.

    Raises:
        Missing: packages are not installed; the message has the command that installs them.
    """
    place = folder / ("all" if sample >= 1 else f"sample-{sample:g}")
    files, marker = place / "documentation", place / _COMPLETE_MARKER
    if not marker.exists():
        shutil.rmtree(place, ignore_errors=True)
        for source, relative in _sources():
            if _share(relative) < sample:
                _bring(source, files / relative)
        marker.touch()
    sizes = [path.stat().st_size for path in files.rglob("*") if path.is_file()]
    return Workplace(place, files, len(sizes), sum(sizes))


def build(place: Workplace) -> Path:
    """Ingest the files with vectors; unchanged files are skipped."""
    from rolebundle.admin import Admin
    from rolebundle.ingest.options import IngestOptions

    path = place.corpus("retrieve")
    with Admin(path) as admin:
        admin.ingest([place.files], IngestOptions(workers=os.cpu_count() or 1))
    return path


def questions(n: int | None = None) -> list[str]:
    """Return the first ``n`` questions of the list, or all. Its topics alternate."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = [line for line in lines if line and not line.startswith("#")]
    if n is not None and n > len(questions):
        raise Missing(f"{QUESTIONS.name} has {len(questions)} questions, not {n}")
    return questions[:n]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every benchmark has."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(tempfile.gettempdir()) / "rolebundle-benchmarks",
        help="working folder, about 4 GB for the whole corpus (default: %(default)s)",
    )
    parser.add_argument(
        "--sample",
        type=_fraction,
        default=1.0,
        metavar="FRACTION",
        help="share of the files for a quick run, always the same files (default: all)",
    )


def print_table(rows: list[tuple[str, str, str]]) -> None:
    """Print rows of (what, figure, goal) as a Markdown table."""
    print("| what | figure | goal |\n| --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("more than 0, at most 1")
    return value


def _sources() -> Iterator[tuple[Path, str]]:
    """Yield every file of documentation, and its path in the working folder."""
    listings = {package: _listing(package) for package in PACKAGES}
    missing = [package for package, listing in listings.items() if not listing]
    if missing:
        raise Missing(
            f"not installed: {', '.join(missing)}\n"
            f"install what is missing: sudo apt-get install {' '.join(missing)}"
        )
    for package, listing in listings.items():
        for name in listing:
            path = Path(name)
            if _is_documentation(name) and path.is_file() and not path.is_symlink():
                yield path, f"{package}/{name.removesuffix('.gz').removeprefix('/usr/share/')}"


def _listing(package: str) -> list[str]:
    try:
        listing = subprocess.run(
            ["dpkg", "-L", package], capture_output=True, text=True, check=False
        ).stdout.splitlines()
    except FileNotFoundError:
        raise Missing("these benchmarks gather their corpus from Debian packages") from None
    # In a container dpkg may be configured to skip /usr/share/doc: files are listed but missing.
    exists = any(_is_documentation(name) and Path(name).is_file() for name in listing)
    return listing if exists else []


def _is_documentation(name: str) -> bool:
    suffix = Path(name.removesuffix(".gz")).suffix
    # The kernel's ABI descriptions are text files without a suffix.
    return (
        suffix in DOCUMENTATION_SUFFIXES
        or name.startswith(MANUAL_FOLDER)
        or "/Documentation/ABI/" in name
    )


def _share(relative: str) -> float:
    return int.from_bytes(blake2b(relative.encode(), digest_size=8).digest()) / 2**64


def _bring(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".gz":
        with gzip.open(source) as packed, target.open("wb") as stream:
            shutil.copyfileobj(packed, stream)
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def main() -> None:
    """Gather the files and print what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    place = gather(arguments.folder, arguments.sample)
    print(f"{place.count:,} files, {place.size / 1e6:,.0f} MB in {place.files}")
    print(f"{len(questions())} questions in {QUESTIONS.name}")


if __name__ == "__main__":
    main()
