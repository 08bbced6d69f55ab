"""The start of gates, and how often their hooks have blocked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.gate import GateStart
from rolebundle.verification.gate import start as gate
from rolebundle.verification.gate.contract import load_contract
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Gates:
    """What one corpus remembers of gates. :meth:`Engine.gate_check` judges the work."""

    workspace: Workspace

    def start(self, contract: Path, *, restart: bool = False) -> GateStart:
        """Record the state of the files that a contract names.

        The corpus file is created if it is missing.

        Args:
            contract: the contract's file.
            restart: replace the baseline of an earlier start.

        Raises:
            UsageError: ``no_contract``, or ``gate_started``: it was started before.
            ConfigurationError: the contract is wrong.
        """
        loaded = load_contract(contract)
        # Before the lock, which others would wait for: it reads all files.
        baseline = gate.make_baseline(loaded, self.workspace.path)
        with self.workspace.recorded_change("gate", create=True) as (corpus, details):
            start = gate.start_gate(corpus, loaded, baseline, datetime.now(UTC), restart=restart)
            details.update(
                step="restart" if start.restarts else "start",
                contract_hash=start.contract_hash,
                restarts=start.restarts,
            )
        return start

    def count_blocks(self, contract: Path, blocks: int) -> None:
        """See :func:`rolebundle.verification.gate.start.count_blocks`."""
        with self.workspace.open_writer() as corpus:
            gate.count_blocks(corpus, contract, blocks)
