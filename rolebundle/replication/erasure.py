"""Removing older states of replicas from the stores that they were published to.

After a purge these states may hold what was purged. What could not be removed is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from rolebundle.contracts.purge import StoreHistory
from rolebundle.errors import RolebundleError
from rolebundle.replication.transports.registry import open_transport
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records.publications import publications
from rolebundle.storage.replicas.staging import staging


def list_history(transport: Transport) -> StoreHistory:
    """The older states that a store still holds."""
    try:
        return _history(transport.target, states_left=transport.history())
    except RolebundleError as error:
        return _history(transport.target, problem=f"not listed: {_text_of(error)}")


def erase_history(transport: Transport) -> StoreHistory:
    """Remove the older states from a store, as far as its transport can.

    Call it after the publish that follows a purge: what was the present state is then an older one.

    Returns:
        What was removed, and what is left and why. A store that cannot be reached is a problem in
        it, and no error.
    """
    before = list_history(transport)
    if not before.left:
        return before
    problem = ""
    try:
        transport.erase_history()
    except RolebundleError as error:
        problem = _text_of(error)
    after = list_history(transport)
    if after.problem:
        # It is unknown what was removed.
        return before.model_copy(update={"problem": problem or after.problem})
    if after.left and not problem:
        problem = "the transport cannot remove them; remove them with the tools of the store"
    remaining = set(after.left)
    erased = [state for state in before.left if state not in remaining]
    return after.model_copy(update={"erased": erased, "problem": problem})


def visit_stores(
    corpus: Corpus,
    *,
    erase: bool,
    open_store: Callable[[str], Transport] = open_transport,
) -> list[StoreHistory]:
    """List the older states in the stores of all publications, or remove them.

    Args:
        corpus: the publisher's corpus.
        erase: remove them. No other process publishes meanwhile.
        open_store: from a target to its transport.

    Raises:
        CorpusBusy: another process publishes.
    """
    present = publications(corpus)
    if not present:
        return []
    visit = erase_history if erase else list_history
    histories = []
    with staging(corpus.path) if erase else nullcontext():
        for publication in present:
            try:
                history = visit(open_store(publication.target))
            except RolebundleError as error:
                history = _history(publication.target, problem=_text_of(error))
            histories.append(history.model_copy(update={"outdated": publication.is_outdated}))
    return histories


def _history(target: str, states_left: Sequence[str] = (), problem: str = "") -> StoreHistory:
    return StoreHistory(
        target=target, erased=[], left=list(states_left), problem=problem, outdated=False
    )


def _text_of(error: RolebundleError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
