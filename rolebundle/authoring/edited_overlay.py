"""An edited copy of an overlay: checked and tried before it is a file, and saved as a new role."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rolebundle.authoring.files import write_new
from rolebundle.authoring.neutral_overlay import check_role_id, overlay_text
from rolebundle.contracts.lint import LintProblem
from rolebundle.errors import ConfigurationError
from rolebundle.policy.overlay_lint import lint_overlay
from rolebundle.policy.overlays import ResolvedOverlay, load_file, locate
from rolebundle.policy.policy_json import parse
from rolebundle.storage.connection import Corpus
from rolebundle.storage.location import overlays_path


class EditedOverlay(NamedTuple):
    """An overlay that is not written yet.

    Attributes:
        role_id: the new role.
        path: where its file would be, in the corpus's own folder.
        content: the bytes of the file.
    """

    role_id: str
    path: Path
    content: bytes

    def lint(self, folders: Sequence[Path], corpus: Corpus) -> list[LintProblem]:
        """Its findings, as of a file."""
        return lint_overlay(self.path, folders, corpus, content=self.content)

    def load(self, folders: Sequence[Path]) -> ResolvedOverlay:
        """The overlay that the file would be.

        Raises:
            OverlayError: it is malformed.
        """
        return load_file(self.path, folders, self.content)

    def save(self, folders: Sequence[Path]) -> None:
        """Write the file, if it is a valid overlay of a new role.

        Raises:
            OverlayError: it is malformed.
            ConfigurationError: ``role_exists``: a folder has this role; or ``file_exists``.
            StorageError: it cannot be written. Nothing was written.
        """
        self.load(folders)
        existing = locate(self.role_id, folders)
        if existing is not None:
            raise ConfigurationError(
                "role_exists",
                f"there is a role {self.role_id} already: {existing}",
                "choose another id; no file is ever overwritten",
            )
        write_new({self.path: self.content.decode()})


def edited_overlay(role_id: str, text: str, corpus: Path) -> EditedOverlay:
    """The overlay of a new role from an edited text.

    Args:
        role_id: the new role; it replaces the ``role_id`` of the text.
        text: JSON. What is wrong with it is reported by :meth:`EditedOverlay.lint`.
        corpus: the corpus file.

    Raises:
        UsageError: ``bad_role_id``.
    """
    check_role_id(role_id)
    content = text.encode("utf-8", "surrogatepass")
    values = parse(content)
    if isinstance(values, dict):
        content = overlay_text({"role_id": role_id} | values | {"role_id": role_id}).encode()
    return EditedOverlay(role_id, overlays_path(corpus) / f"{role_id}.json", content)
