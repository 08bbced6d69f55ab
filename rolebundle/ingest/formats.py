"""What `rolebundle corpus formats` lists: what is read, and what is not."""

from __future__ import annotations

from rolebundle.contracts.ingest import FormatList
from rolebundle.ingest.readers import FORMATS


def formats() -> FormatList:
    """All formats, and the kinds of files that are skipped by their name."""
    return FormatList(
        formats=list(FORMATS),
        unsupported=[
            {"kind": kind, "suffixes": [f".{suffix}" for suffix in suffixes.split()]}
            for kind, suffixes in KINDS.items()
        ],
    )


# -- unsupported --
#
# The names of kinds of files that are not read, so that a report says more than "binary".


_ARCHIVE = "archive; unpack it"
# A file with one of these suffixes is read if it is text, except those in _TEXT_MARKS.
KINDS = {
    "image": (
        "png jpg jpeg jpe gif bmp tif tiff webp heic heif avif ico icns psd svg svgz raw cr2 nef"
        " xcf xpm pbm pgm ppm drawio"
    ),
    "audio": "mp3 wav flac ogg oga m4a aac wma opus mid midi aiff amr",
    "video": "mp4 mkv mov avi webm wmv m4v mpg mpeg flv 3gp ogv",
    _ARCHIVE: (
        "zip tar gz tgz bz2 tbz xz txz zst 7z rar jar war whl deb rpm iso dmg cab lz4 lzma cpio"
    ),
    "program": "exe dll so dylib o a lib class pyc pyd wasm msi apk app bin com elf ko",
    "font": "ttf otf woff woff2 eot pfb",
    "database": "db sqlite sqlite3 mdb accdb parquet arrow feather dbf realm",
    "data of a program": (
        "npy npz pkl pickle pt pth onnx safetensors gguf h5 hdf5 mat rds dat pack idx"
    ),
    "old Word format; save it as docx": "doc dot",
    "old Excel format; save it as xlsx": "xls xlt xlsb",
    "old PowerPoint format; save it as pptx": "ppt pps pot",
    "Rich Text; save it as docx": "rtf",
    "flat OpenDocument; save it as odt, ods or odp": "fodt fods fodp fodg",
    "Apple iWork document; export it as docx, xlsx or pptx": "pages numbers key",
    "WordPerfect document; save it as docx": "wpd wps",
    "drawing; export it as pdf": "odg vsd vsdx vsdm vdx pub cdr dwg dxf",
    "PostScript; convert it to pdf": "ps eps ai",
    "Outlook message; save it as eml": "msg",
    "Outlook mailbox; export it as mbox": "pst ost",
    "Kindle book; convert it to epub": "mobi azw azw3",
    "page images; convert it to pdf with text": "djvu xps oxps cbz cbr",
    "compiled help": "chm hlp",
    "OneNote section; export it as docx": "one onetoc2",
}
_BY_SUFFIX = {suffix: kind for kind, suffixes in KINDS.items() for suffix in suffixes.split()}
# How a file of markup begins that is text, but not for people.
_TEXT_MARKS = {
    "svg": (b"<svg", b"<?xml", b"<!DOCTYPE svg"),
    "rtf": (b"{\\rtf",),
    **dict.fromkeys(("fodt", "fods", "fodp", "fodg"), (b"<?xml", b"<office:")),
    "ps": (b"%!PS",),
    "eps": (b"%!PS",),
    "ai": (b"%!PS", b"%PDF"),
}
_MAGIC = {
    "image": (b"\x89PNG", b"\xff\xd8\xff", b"GIF8"),
    _ARCHIVE: (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"!<arch>"),
    "program": (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe"),
    "database": (b"SQLite format 3\0",),
    "PDF document; name it .pdf": (b"%PDF",),
    "old Office format; save it as docx, xlsx or pptx": (b"\xd0\xcf\x11\xe0",),
}


def kind_of(path: str, data: bytes = b"") -> str:
    """What kind of file this is, such as ``png: image``; empty if it is not known.

    Args:
        path: the file. Its suffix counts first.
        data: its beginning; empty if it was not read.
    """
    suffix = _suffix(path)
    kind = _BY_SUFFIX.get(suffix)
    if kind is None:
        return next((kind for kind, marks in _MAGIC.items() if data.startswith(marks)), "")
    return f"{suffix}: {kind}"


def is_markup_only(path: str, data: bytes) -> bool:
    """Whether a file of text, such as a drawing, is not written for people."""
    marks = _TEXT_MARKS.get(_suffix(path))
    return marks is not None and data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(marks)


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
