"""How a corpus remembers its embedding model: enough to ask it again, and nothing secret."""

from __future__ import annotations

import json
from dataclasses import replace

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.registry import SERVED, ProviderSpec

QUERY_DEADLINE_SECONDS = 10.0
"""A query that waits longer for its vector is answered from the lexical lane alone."""
PASSAGES_DEADLINE_SECONDS = 60.0
"""For one request of a batch: nobody sits and waits for it."""


def to_reach(spec: ProviderSpec) -> str:
    """What the corpus keeps of a spec, as JSON. Keys and permitted hosts stay with the user."""
    kept: dict[str, object] = {"provider": spec.provider, "model": spec.model}
    if spec.url:
        kept["url"] = spec.url
    if spec.prefixes is not None:
        kept["prefixes"] = list(spec.prefixes)
    return json.dumps(kept, ensure_ascii=False)


def to_spec(
    reach: str,
    model: ModelIdentity,
    *,
    url: str = "",
    allow_host: str = "",
    deadline_seconds: float = QUERY_DEADLINE_SECONDS,
) -> ProviderSpec:
    """The spec that reaches an index's model again.

    Args:
        reach: what the corpus keeps. The file may come from elsewhere, so nothing in it can permit
            a host that is not this machine.
        model: the index's model, for what ``reach`` does not say.
        url: the user's own setting of the server; wins.
        allow_host: the one host off this machine that the user permits.
        deadline_seconds: for one request to the server.
    """
    kept = _object(reach)
    spec = ProviderSpec(
        provider=_text(kept, "provider") or model.provider,
        model="" if model.provider == "static" else _text(kept, "model") or model.model,
        prefixes=_pair(kept.get("prefixes")),
    )
    if spec.provider not in SERVED:
        # A server that the user set for other corpora is none of this model's business.
        return spec
    return replace(
        spec,
        url=url or _text(kept, "url"),
        allow_host=allow_host,
        deadline_seconds=deadline_seconds,
    )


def _object(reach: str) -> dict[str, object]:
    try:
        kept = json.loads(reach)
    except (ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _text(kept: dict[str, object], name: str) -> str:
    value = kept.get(name)
    return value if isinstance(value, str) else ""


def _pair(value: object) -> tuple[str, str] | None:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value):
        return value[0], value[1]
    return None
