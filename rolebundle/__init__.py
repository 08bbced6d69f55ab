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

# `typing` takes as long to import as all that a command in a server needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    "Admin": "rolebundle.admin:Admin",
    "CorpusStatus": "rolebundle.contracts.upkeep:CorpusStatus",
    "EmbeddingProvider": "rolebundle.embedding.provider:EmbeddingProvider",
    "Engine": "rolebundle.engine:Engine",
    "IngestOptions": "rolebundle.ingest.options:IngestOptions",
    "IngestReport": "rolebundle.contracts.ingest:IngestReport",
    "Lookup": "rolebundle.contracts.lookup:Lookup",
    "Overlay": "rolebundle.contracts.overlay:Overlay",
    "ResolvedOverlay": "rolebundle.policy.overlays:ResolvedOverlay",
    "RetrievalBundle": "rolebundle.contracts.bundle:RetrievalBundle",
    "RetrievalRequest": "rolebundle.contracts.request:RetrievalRequest",
    "RolebundleError": "rolebundle.errors:RolebundleError",
    "Verification": "rolebundle.contracts.verification:Verification",
    "VerifyRequest": "rolebundle.contracts.verification:VerifyRequest",
    "load_role": "rolebundle.policy.overlays:load_role",
    "load_file": "rolebundle.policy.overlays:load_file",
    "overlay_folders": "rolebundle.policy.overlays:overlay_folders",
    "Workspace": "rolebundle.workspace:Workspace",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605 - the table is the list


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rolebundle' has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return list(_PUBLIC)
