"""Field merge of loom, the pure heart of sync protocol v3.

The merge invariant: no value that a person typed is discarded without a
person's decision.  `merge_field` therefore never chooses between two concurrent
values.  It takes the newer one where one descends from the other, merges text
by paragraph where it can, and otherwise returns both and says so.

No clock, no randomness, no I/O.  A stamp is made by the caller (see ADR-0017).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher

MAX_CLOCK_SKEW_MS = 10 * 60 * 1000  # beyond it the relay answers MOSS-4221


@dataclass(frozen=True, order=True)
class Stamp:
    """Causal stamp: compares by wall clock, then counter, then device."""

    wall_ms: int
    counter: int
    device: str

    def after(self, now_ms: int) -> "Stamp":
        """The next stamp of this device.  It never goes back, even if the clock does."""
        if now_ms > self.wall_ms:
            return Stamp(now_ms, 0, self.device)
        return Stamp(self.wall_ms, self.counter + 1, self.device)


@dataclass(frozen=True)
class Change:
    value: str
    stamp: Stamp
    parents: frozenset[Stamp] = field(default_factory=frozenset)
    is_text: bool = False

    def descends_from(self, other: "Change") -> bool:
        return other.stamp == self.stamp or other.stamp in self.parents


@dataclass(frozen=True)
class Merged:
    value: str
    parents: frozenset[Stamp]
    alternatives: tuple[str, ...] = ()  # not empty: note needs review, MOSS-4091

    @property
    def diverged(self) -> bool:
        return bool(self.alternatives)


def merge_field(ancestor: str, ours: Change, theirs: Change) -> Merged:
    """Merge two changes of one field.  The order of the arguments does not matter."""
    parents = ours.parents | theirs.parents | {ours.stamp, theirs.stamp}
    if ours.value == theirs.value or ours.descends_from(theirs):
        return Merged(ours.value, parents)
    if theirs.descends_from(ours):
        return Merged(theirs.value, parents)
    # Sort so that every device shows the same value first.
    first, second = sorted((ours, theirs), key=lambda change: change.stamp)
    if first.is_text and second.is_text:
        text = merge_paragraphs(ancestor, first.value, second.value)
        if text is not None:
            return Merged(text, parents)
    return Merged(second.value, parents, alternatives=(first.value,))


def merge_paragraphs(ancestor: str, left: str, right: str) -> str | None:
    """Three-way merge by paragraph, or None where both changed the same one.

    Line ends are normalised first.  Without that, a tablet with Windows line
    ends makes every paragraph look changed and the last one is kept twice
    (issue 1893).
    """
    base, a, b = (_paragraphs(text) for text in (ancestor, left, right))
    edits_a, edits_b = _edits(base, a), _edits(base, b)
    for start_a, end_a, _ in edits_a:
        for start_b, end_b, _ in edits_b:
            # Two insertions at one place clash as well: their order would be a guess.
            if start_a == start_b or (start_a < end_b and start_b < end_a):
                return None
    merged = list(base)
    for start, end, replacement in sorted(edits_a + edits_b, reverse=True):
        merged[start:end] = replacement
    return "\n\n".join(merged)


def _paragraphs(text: str) -> list[str]:
    normalised = text.replace("\r\n", "\n").strip("\n")
    return [part for part in normalised.split("\n\n") if part]


def _edits(base: list[str], changed: list[str]) -> list[tuple[int, int, list[str]]]:
    matcher = SequenceMatcher(a=base, b=changed, autojunk=False)
    return [
        (a1, a2, changed[b1:b2])
        for tag, a1, a2, b1, b2 in matcher.get_opcodes()
        if tag != "equal"
    ]
