"""Rows 42 and 43: links, pipes and devices are never read; what was read is what was hashed."""

import gzip
import os
import resource
import socket
import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from ingest.office.parts import zipped
from rolebundle.contracts.ingest import IngestReport
from rolebundle.ingest import prepare, sync, walk
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.killing import Report, run_child
from support.scratch import make_pipe
from support.sound import paths_in
from support.source_tree import write_files

SECRET = "the launch code is 0000"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {"outside/secret.md": SECRET, "notes/a.md": "A plain note.\n"}
    return write_files(tmp_path, files) / "notes"


def ingest(tree: Path) -> IngestReport:
    with open_writer(tree.parent / "c.db") as corpus:
        return sync.ingest(corpus, [tree], None)


def skipped(report: IngestReport) -> dict[str, str]:
    return {skip.path: skip.code for skip in report.skipped}


def assert_nothing_from_outside(tree: Path) -> None:
    for suffix in ("", "-wal"):
        path = Path(f"{tree.parent / 'c.db'}{suffix}")
        if path.exists():
            assert b"launch code" not in path.read_bytes()


def test_what_is_no_regular_file_below_the_root(tree: Path) -> None:
    os.mkfifo(tree / "pipe.md")
    links = {
        "device.md": ("/dev/zero", "escapes_root"),
        "out.md": ("../outside/secret.md", "escapes_root"),
        "out-absolute.md": (tree.parent / "outside" / "secret.md", "escapes_root"),
        "out-folder": ("../outside", "escapes_root"),
        "inside.md": ("a.md", "link"),
        "self": (".", "link"),
        "loop.md": ("loop.md", "broken_link"),
        "loop-one": ("loop-two", "broken_link"),
        "loop-two": ("loop-one", "broken_link"),
        "nowhere.md": ("not-there", "broken_link"),
    }
    for name, (target, _) in links.items():
        (tree / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as listener:
        old = Path.cwd()
        os.chdir(tree)  # a socket's path is short
        try:
            listener.bind("socket.md")
        finally:
            os.chdir(old)
        report = ingest(tree)
    codes = {name: code for name, (_, code) in links.items()}
    assert skipped(report) == codes | {"pipe.md": "not_a_file", "socket.md": "not_a_file"}
    assert report.added == 1
    assert_nothing_from_outside(tree)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/mem"])
def test_a_device_named_on_the_command_line(tmp_path: Path, path: str) -> None:
    outcome = invoke("ingest", path, "--lexical-only", "--json", "--db", tmp_path / "c.db")
    assert outcome.code == 10


def test_dots_in_a_path(tree: Path) -> None:
    """What the caller names is the caller's to name; the ids are the plain path's."""
    around = tree / ".." / "notes" / "." / "a.md"
    outcome = invoke("ingest", around, "--lexical-only", "--json", "--db", tree.parent / "c.db")
    assert outcome.code == 0
    with open_reader(tree.parent / "c.db") as corpus:
        assert paths_in(corpus) == {"a.md"}


def test_names_that_are_no_text(tree: Path) -> None:
    write_files(tree, {"\udcff.md": "A note.\n", "folder-\udcfe/b.md": "Another.\n"})
    for option in ([], ["--json"]):
        outcome = invoke("ingest", tree, "--lexical-only", *option, "--db", tree.parent / "c.db")
        assert outcome.code == 0, outcome
        assert "bad_name" in outcome.out
        assert r"\udcff" in outcome.out + outcome.err
    assert outcome.json()["documents"] == 1


# -- swapped after it was found ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("swap", "code"),
    [
        (lambda path: path.symlink_to("../outside/secret.md"), "unreadable"),
        (make_pipe, "not_a_file"),
        (Path.mkdir, "unreadable"),
        (lambda _: None, "unreadable"),
    ],
    ids=["link", "pipe", "folder", "gone"],
)
def test_swapped_between_finding_and_reading(
    tree: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], object], code: str
) -> None:
    real = walk.read_bytes

    def swapped(location: str, path: str, size_cap: int) -> bytes:
        Path(location).unlink()
        swap(Path(location))
        return real(location, path, size_cap)

    monkeypatch.setattr(prepare, "read_bytes", swapped)
    report = ingest(tree)
    assert skipped(report) == {"a.md": code}
    assert report.documents == 0
    assert_nothing_from_outside(tree)


def stored(tree: Path) -> tuple[str, str]:
    """The hash of the only file, and its text."""
    with open_reader(tree.parent / "c.db") as corpus:
        [row] = corpus.rows("SELECT f.content_hash, c.content FROM file f, chunk c")
    return row


def test_changed_after_it_was_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash is that of the text that was stored, so that the next run sees the change."""
    real = walk.read_bytes
    path = tree / "a.md"

    def changing(location: str, relative: str, size_cap: int) -> bytes:
        data = real(location, relative, size_cap)
        path.write_text("An entirely new text.\n", encoding="utf-8")
        return data

    monkeypatch.setattr(prepare, "read_bytes", changing)
    before = path.read_bytes()
    ingest(tree)
    assert stored(tree) == (sha256(before).hexdigest(), before.decode().strip())
    monkeypatch.undo()
    assert ingest(tree).updated == 1
    assert stored(tree) == (sha256(path.read_bytes()).hexdigest(), "An entirely new text.")
    assert ingest(tree).unchanged == 1


# -- Files that are too large, not text, or bombs are skipped with a code; memory stays bounded ----


MEGABYTE = 1024 * 1024


def pdf_of(stream: bytes, filters: str = "/FlateDecode") -> bytes:
    """A PDF of one page with this content stream, as compressed as it is given."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R >>",
        f"<< /Length {len(stream)} /Filter {filters} >>\nstream\n".encode()
        + stream
        + b"\nendstream",
    ]
    out = bytearray(b"%PDF-1.5\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF".encode()
    return bytes(out)


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(1)
    block = b" " * MEGABYTE
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


def write_heavy_tree(tree: Path) -> None:
    large, archive = bomb(120), zipped({"a.txt": b"\0" * (5 * MEGABYTE)})
    twice = pdf_of(zlib.compress(large, 9), "[/FlateDecode /FlateDecode]")
    write_files(
        tree,
        {
            "good.md": "A good note.\n",
            "archive.gz": gzip.compress(b"\0" * (5 * MEGABYTE), 1),
            "archive.zip": archive,
            "archive.md": archive,
            "binary": bytes(range(256)) * 400,
            "program": Path(sys.executable).read_bytes()[: 2 * MEGABYTE],
            "bomb.pdf": pdf_of(large),
            "bomb-in-a-bomb.pdf": twice,
            "cut.pdf": pdf_of(bomb(1))[:300],
            "zzz.md": "The last note.\n",
        },
    )
    with (tree / "huge.md").open("wb") as stream:
        stream.truncate(100 * MEGABYTE)
    with (tree / "over.txt").open("wb") as stream:
        stream.write(b"word " * (21 * MEGABYTE // 5))


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
@pytest.mark.slow
def test_heavy_files_are_skipped_and_the_rest_goes_on(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write_heavy_tree(tree)

    def work(report: Report) -> None:
        before = peak()
        with open_writer(tmp_path / "c.db") as corpus:
            result = sync.ingest(corpus, [tree], None)
        for skip in result.skipped:
            report(f"{skip.path} {skip.code}")
        report(f"added {result.added}")
        report(f"grew {(peak() - before) // MEGABYTE}")

    ended = run_child(work)
    assert ended.code == 0
    reported = dict(line.split() for line in ended.reported)
    grew = int(reported.pop("grew"))
    assert reported.pop("added") == "2"
    assert reported.keys() == {path.name for path in tree.iterdir()} - {"good.md", "zzz.md"}
    assert reported["huge.md"] == reported["over.txt"] == "too_large"
    assert (reported["archive.gz"], reported["binary"]) == ("unsupported", "binary")
    assert reported["archive.zip"] == reported["program"] == "unsupported"
    assert reported["archive.md"] in ("unsupported", "undecodable")
    assert grew < 400, "megabytes, for half a gigabyte that the files promise"


def peak() -> int:
    if Path("/proc/self/status").exists():
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
