"""Row 44: files that are too large, not text, or bombs. Skipped with a code; memory stays bounded."""

import gzip
import resource
import sys
import zlib
from pathlib import Path

import pytest

from rolebundle.ingest import sync
from rolebundle.storage.writing import open_writer
from support.killing import Report, run_child
from support.office.parts import zipped
from support.source_tree import write_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")

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
