"""The parts of an office document or an e-book, and the texts in them."""

import io
import zipfile
from collections.abc import Mapping

FACT = "The vault of the north wing opens with the word zebra47."
DAWN = "The harbour opens at dawn."

OFFICE = "http://schemas.openxmlformats.org"
RELATION = f"{OFFICE}/officeDocument/2006/relationships"


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """An archive of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def relations(*targets: tuple[str, str]) -> str:
    """A file of relations ``rId1``, ``rId2``, … with these types and targets."""
    entries = "".join(
        f'<Relationship Id="rId{n}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{entries}</Relationships>'
