"""Replicas: what the owner of a corpus publishes and pulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rolebundle.contracts.replica import PublishReport, PullReport
from rolebundle.policy.audience import resolve_audience
from rolebundle.replication.publish import PublishOptions, forget, publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PrivateKey, PublicKey
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.records.replica import refuse_changes
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Replicas:
    """The replicas of one corpus; or the corpus as a replica of another one."""

    workspace: Workspace

    def publish(
        self,
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
        corpus = self.workspace.corpus
        refuse_changes(corpus)
        audience = resolve_audience(corpus, transport.target, agent, scopes, level)
        report = publish(self.workspace.path, audience, transport, key, options)
        details = {"generation": report.manifest.generation, "for": audience.agent}
        self.workspace.recorder.note(self.workspace.corpus, "publish", details=details)
        return report

    def forget_target(self, target: str, *, confirmed: bool) -> None:
        """Forget a target; see :func:`rolebundle.replication.publish.forget`."""
        refuse_changes(self.workspace.corpus)
        publication = forget(self.workspace.path, target, confirmed=confirmed)
        details = {"forgotten": publication.generation, "for": publication.agent}
        self.workspace.recorder.note(self.workspace.corpus, "publish", details=details)

    def pull(
        self, transport: Transport, key: PublicKey, overlay_folders: Sequence[Path]
    ) -> PullReport:
        """Replace the replica by the published one; see :mod:`rolebundle.replication.pull`."""
        report = pull(transport, self.workspace.path, key, overlay_folders)
        self.workspace.refresh()
        if report.manifest.policy_digest:
            # Also if it is current: an earlier pull may have been killed before it came to this.
            self.workspace.recorder.begin(self.workspace.corpus)
        if report.state == "updated":
            details = {"generation": report.manifest.generation}
            self.workspace.recorder.note(self.workspace.corpus, "pull", details=details)
        return report
