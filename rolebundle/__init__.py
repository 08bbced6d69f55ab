"""Governed retrieval for on-device agents.

>>> from pathlib import Path
>>> from rolebundle import Engine, RetrievalRequest
>>> engine = Engine(Path("corpus.db"))  # doctest: +SKIP
>>> bundle = engine.retrieve(RetrievalRequest(task="Plan release 3.0"))  # doctest: +SKIP

The names below are the public API. They are loaded when they are first used, because a one-shot
command must not wait for what it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rolebundle.admin import Admin as Admin
    from rolebundle.contracts.bundle import RetrievalBundle as RetrievalBundle
    from rolebundle.contracts.ingest import IngestReport as IngestReport
    from rolebundle.contracts.lookup import Lookup as Lookup
    from rolebundle.contracts.overlay import Overlay as Overlay
    from rolebundle.contracts.request import RetrievalRequest as RetrievalRequest
    from rolebundle.contracts.upkeep import CorpusStatus as CorpusStatus
    from rolebundle.contracts.verification import Verification as Verification
    from rolebundle.contracts.verification import VerifyRequest as VerifyRequest
    from rolebundle.embedding.provider import EmbeddingProvider as EmbeddingProvider
    from rolebundle.engine import Engine as Engine
    from rolebundle.errors import RolebundleError as RolebundleError
    from rolebundle.ingest.options import IngestOptions as IngestOptions
    from rolebundle.policy.overlays import ResolvedOverlay as ResolvedOverlay
    from rolebundle.policy.overlays import load_file as load_file
    from rolebundle.policy.overlays import load_role as load_role
    from rolebundle.policy.overlays import overlay_folders as overlay_folders
    from rolebundle.workspace import Workspace as Workspace

_PUBLIC = {
    "Admin": "rolebundle.admin",
    "CorpusStatus": "rolebundle.contracts.upkeep",
    "EmbeddingProvider": "rolebundle.embedding.provider",
    "Engine": "rolebundle.engine",
    "IngestOptions": "rolebundle.ingest.options",
    "IngestReport": "rolebundle.contracts.ingest",
    "Lookup": "rolebundle.contracts.lookup",
    "Overlay": "rolebundle.contracts.overlay",
    "ResolvedOverlay": "rolebundle.policy.overlays",
    "RetrievalBundle": "rolebundle.contracts.bundle",
    "RetrievalRequest": "rolebundle.contracts.request",
    "RolebundleError": "rolebundle.errors",
    "Verification": "rolebundle.contracts.verification",
    "VerifyRequest": "rolebundle.contracts.verification",
    "load_role": "rolebundle.policy.overlays",
    "load_file": "rolebundle.policy.overlays",
    "overlay_folders": "rolebundle.policy.overlays",
    "Workspace": "rolebundle.workspace",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605 - the table is the list


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rolebundle' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return list(_PUBLIC)
