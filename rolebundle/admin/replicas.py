"""Replicas: what the owner of a corpus publishes and pulls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rolebundle.contracts.replica import PublishReport, PullReport
from rolebundle.policy.audience import resolve_audience
from rolebundle.replication.publish import PublishOptions, forget, publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PrivateKey, PublicKey
from rolebundle.replication.transports import Transport
from rolebundle.storage.records.replica import refuse_changes
from rolebundle.workspace import Workspace


def publish_replica(
    workspace: Workspace,
    transport: Transport,
    key: PrivateKey,
    options: PublishOptions,
    *,
    agent: str = "",
    scopes: Sequence[str] = (),
    level: str = "",
) -> PublishReport:
    """Publish a replica for an agent, or for everyone up to a level.

    See :func:`rolebundle.replication.publish.publish`, and for the arguments
    :func:`rolebundle.policy.audience.resolve_audience`.
    """
    corpus = workspace.corpus
    refuse_changes(corpus)
    audience = resolve_audience(corpus, transport.target, agent, scopes, level)
    report = publish(workspace.path, audience, transport, key, options)
    details = {"generation": report.manifest.generation, "for": audience.agent}
    workspace.recorder.note(workspace.corpus, "publish", details=details)
    return report


def forget_target(workspace: Workspace, target: str, *, confirmed: bool) -> None:
    """Forget a target; see :func:`rolebundle.replication.publish.forget`."""
    refuse_changes(workspace.corpus)
    publication = forget(workspace.path, target, confirmed=confirmed)
    details = {"forgotten": publication.generation, "for": publication.agent}
    workspace.recorder.note(workspace.corpus, "publish", details=details)


def pull_replica(
    workspace: Workspace, transport: Transport, key: PublicKey, overlay_folders: Sequence[Path]
) -> PullReport:
    """Replace the replica by the published one; see :mod:`rolebundle.replication.pull`."""
    report = pull(transport, workspace.path, key, overlay_folders)
    workspace.refresh()
    if report.manifest.policy_digest:
        # Also if it is current: an earlier pull may have been killed before it came to this.
        workspace.recorder.begin(workspace.corpus)
    if report.state == "updated":
        details = {"generation": report.manifest.generation}
        workspace.recorder.note(workspace.corpus, "pull", details=details)
    return report
