"""An agent without a model: it retrieves for a role, cites its evidence, and explains a rejection.

    rolebundle ingest sample_corpus --db team.db
    python examples/citing_agent.py team.db "Can a stolen tablet replay a token?" security-reviewer

A model would write an answer from the passages. This agent only repeats the first words of each.
It shows the rest: every statement has a citation, an empty answer comes with its reason, and weak
evidence is reported as weak.
"""

from __future__ import annotations

import sys
from typing import Any

from rolebundle.interfaces.client import Sidecar, SidecarError

WORDS = 24


def answer(sidecar: Sidecar, task: str, role: str) -> None:
    """Print the role's evidence for the task, and why one passage was rejected."""
    bundle = sidecar.retrieve(task, role=role, limit=3)
    if not bundle["selected"]:
        fallback = bundle["fallback"]
        print(f"I found nothing to answer with ({fallback['verdict']}): {fallback['message']}")
        return
    for passage in bundle["selected"]:
        words = passage["content"].split()
        start = " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")
        print(f"[{passage['rank']}] {start}\n    — {passage['citation']['locator']}")
    provenance = bundle["provenance"]
    print(
        f"\nTrust is {provenance['trust_posture']}, and the evidence is "
        f"{provenance['freshness_posture']}."
    )
    if bundle.get("fallback"):
        print(f"Note: {bundle['fallback']['message']}")
    for warning in bundle["warnings"]:
        print(f"Note: {warning['message']}")
    if bundle.get("rejected"):
        print(explanation(sidecar, task, role, bundle["rejected"][0]))


def explanation(sidecar: Sidecar, task: str, role: str, rejection: dict[str, Any]) -> str:
    """Why a passage was rejected, and its score."""
    why = sidecar.why(task, rejection["chunk_id"], role=role, limit=3)
    score = why["score"]
    reason = f"{rejection['reason']}: {why['notes']}"
    beat = f", to beat: {score['to_beat']:.3f}" if "to_beat" in score else ""
    return f"\nRejected: {why['locator']} ({reason}); score {score['scores']['final']:.3f}{beat}"


def main() -> None:
    """Run the agent once."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    db, task, role = sys.argv[1:]
    try:
        with Sidecar(db=db) as sidecar:
            answer(sidecar, task, role)
    except SidecarError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
