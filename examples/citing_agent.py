"""An agent without a model: it retrieves for a role, cites its evidence, and explains a rejection.

    rolebundle ingest sample_corpus --db team.db
    python examples/citing_agent.py team.db "Can a stolen tablet replay a token?" security-reviewer

A model would write an answer from the passages. This agent only repeats the first words of each.
It shows the rest: every statement has a citation, an empty answer comes with its reason, and weak
evidence is reported as weak.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rolebundle import Engine, RetrievalRequest, RolebundleError, overlay_folders

WORDS = 24


def answer(engine: Engine, request: RetrievalRequest) -> None:
    """Print the role's evidence for the task, and why one passage was rejected."""
    bundle = engine.retrieve(request)
    if not bundle.selected:
        verdict, message = (bundle.fallback.verdict, bundle.fallback.message)
        print(f"I found nothing to answer with ({verdict}): {message}")
        return
    for passage in bundle.selected:
        words = passage.content.split()
        start = " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")
        print(f"[{passage.rank}] {start}\n    — {passage.citation.locator}")
    provenance = bundle.provenance
    print(
        f"\nTrust is {provenance.trust_posture}, and the evidence is "
        f"{provenance.freshness_posture}."
    )
    if bundle.fallback:
        print(f"Note: {bundle.fallback.message}")
    for warning in bundle.warnings:
        print(f"Note: {warning.message}")
    if bundle.rejected:
        print(explanation(engine, request, bundle.rejected[0].chunk_id))


def explanation(engine: Engine, request: RetrievalRequest, chunk_id: str) -> str:
    """Why a passage was rejected, and its score."""
    why = engine.why(request, chunk_id)
    final, to_beat = why.score.scores.final, why.score.to_beat
    beat = "" if to_beat is None else f", to beat: {to_beat:.3f}"
    return f"\nRejected: {why.locator} ({why.code}: {why.notes}); score {final:.3f}{beat}"


def main() -> None:
    """Run the agent once."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    db, task, role = sys.argv[1:]
    try:
        with Engine(Path(db), overlay_folders(corpus=Path(db))) as engine:
            answer(engine, RetrievalRequest(task=task, role=role, limit=3))
    except RolebundleError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
