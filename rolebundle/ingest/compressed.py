"""Files that gzip has compressed, such as manual pages and change logs of packages.

Such a file is read as the file that it contains. Citations keep its path, and their lines are those
that ``zless`` shows.
"""

from __future__ import annotations

import io
import zlib
from gzip import GzipFile

from rolebundle.errors import DocumentError, with_detail

_SUFFIX = ".gz"


def name_inside(path: str) -> str:
    """The path of the file inside: without ``.gz``. The path itself if it is not compressed."""
    return path[: -len(_SUFFIX)] if path.endswith(_SUFFIX) else path


def decompressed(data: bytes, path: str, size_cap: int) -> bytes:
    """The bytes inside of a compressed file; the bytes themselves if it is not compressed.

    Args:
        data: the bytes of the file at ``path``.
        path: decides by its suffix, and is named in errors.
        size_cap: the most bytes that may be inside; no more are kept in memory.

    Raises:
        DocumentError: ``unreadable_gzip``, ``too_large``.
    """
    if not path.endswith(_SUFFIX):
        return data
    try:
        with GzipFile(fileobj=io.BytesIO(data)) as file:
            inside = file.read(size_cap + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError(
            "unreadable_gzip",
            f"{path}: it is damaged, or not compressed by gzip",
            with_detail("compress it again, or exclude it", error),
        ) from error
    if len(inside) > size_cap:
        raise DocumentError(
            "too_large",
            f"{path}: more than {size_cap:,} bytes when decompressed, the cap",
            "raise it with --max-size, or leave the file out",
        )
    return inside
