"""Records of publications, without publishing."""

from __future__ import annotations

from rolebundle.storage.replica import Publication


def publication_of(target: str, agent: str = "ana") -> Publication:
    """The record of a publication that carried nothing yet."""
    return Publication(
        target=target,
        agent=agent,
        visibility="{}",
        publisher="head office",
        key_id="0123456789abcdef",
        generation=3,
        purge_generation=1,
        content_digest="digest",
        published_at="2026-11-01T00:00:00Z",
        refuses_at="2026-12-01T00:00:00Z",
        published_purges=1,
        carried=b"",
    )
