"""What a model server's answer means, whichever API it speaks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

# Servers agree neither on the status (400, 413, 422, 500) nor on the words:
# Ollama: "the input length exceeds the context length" (400; 500 in some versions)
# llama.cpp: "input is too large to process. increase the physical batch size", "input is larger
#   than the max context size. skipping" (500), "exceed_context_size_error" (400)
# vLLM: "This model's maximum context length is 512 tokens" (400)
# text-embeddings-inference: "`inputs` must have less than 512 tokens" (413, 422)
_OVER_CONTEXT = re.compile(
    r"context.(length|size|window)|maximum context|too large to process"
    r"|(less|more|fewer) than \d+ tokens|too many tokens",
    re.IGNORECASE,
)

_MOST_SHOWN = 200


def detail_of(body: str) -> str:
    """The server's own words for a failure, out of the shapes that servers put them in."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return "" if "<" in body[:100] else body
    for key in ("error", "message", "detail"):
        if isinstance(told, dict):
            told = told.get(key, told)
    return told if isinstance(told, str) else json.dumps(told)


def refusal(
    status: int, detail: str, *, server: str, model: str, missing_hint: str, context: int | None
) -> EmbedderError:
    """The error for an answer whose status says that the request failed.

    Args:
        status: the HTTP status.
        detail: the server's own words.
        server: its URL.
        model: the model that was asked for.
        missing_hint: how a missing model is put on this server.
        context: the model's context in tokens, where the server told it.
    """
    said = f": {_one_line(detail)}" if detail.strip() else ""
    if _OVER_CONTEXT.search(detail):
        limit = f" of {context} tokens" if context else ""
        return EmbedderError(
            "input_too_long",
            f"a text is longer than the context{limit} of {model}{said}",
            "ingest with a smaller chunk size, or use a model with a longer context",
        )
    if status == 404 and "model" in detail.casefold():
        return missing(server, model, missing_hint)
    if status in {401, 403}:
        return EmbedderError(
            "key_refused",
            f"the model server at {server} refused access (status {status})",
            "put the server's key into the environment variable that the configuration names",
        )
    if status >= 500:
        return EmbedderError(
            "server_error",
            f"the model server at {server} failed (status {status}){said}",
            "look at the server's log, then run the same command again; nothing was stored",
        )
    return EmbedderError(
        "request_refused",
        f"the model server at {server} refused the request (status {status}){said}",
        "check the URL, and that this server and model can embed",
    )


def missing(server: str, model: str, hint: str) -> EmbedderError:
    """The error for a model that the server does not have."""
    return EmbedderError(
        "model_missing", f"the model server at {server} has no model {model}", hint
    )


def unreadable(server: str, reason: str) -> EmbedderError:
    """The error for an answer that is not what the API promises."""
    return EmbedderError(
        "bad_response",
        f"the model server at {server} did not answer as an embedding server does: {reason}",
        "check that the URL is that of an embedding server; nothing was stored",
    )


def as_matrix(rows: object, expected: int, dimensions: int | None, server: str) -> Matrix:
    """One server's vectors as a matrix, all of them or none.

    Whether the numbers are sound is for :func:`rolebundle.embedding.provider.unit_vectors` to say.

    Args:
        rows: what the server sent as vectors.
        expected: how many texts went in.
        dimensions: what the identity says; None where it is just being found out.
        server: its URL.

    Raises:
        EmbedderError: not vectors of numbers, too few or too many, or of another length.
    """
    import numpy as np

    hint = "check the model and its server, then run the same command again; nothing was stored"
    if not isinstance(rows, Sequence) or len(rows) != expected:
        count = len(rows) if isinstance(rows, Sequence) else 0
        raise EmbedderError(
            "embedding_count",
            f"the model server at {server} returned {count} vectors for {expected} texts",
            hint,
        )
    lengths = {len(row) if isinstance(row, Sequence) else 0 for row in rows}
    if lengths != {dimensions or max(lengths)} or 0 in lengths:
        raise EmbedderError(
            "embedding_dimensions",
            f"the model server at {server} returned vectors of {sorted(lengths)} dimensions"
            + (f", the model has {dimensions}" if dimensions else ""),
            hint,
        )
    try:
        # A number too large for a float32 becomes infinite here, and is refused as that.
        with np.errstate(over="ignore"):
            matrix = np.array(rows, dtype=np.float64).astype(np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise unreadable(server, "its vectors are not lists of numbers") from error
    if matrix.ndim != 2:
        raise unreadable(server, "its vectors are not lists of numbers")
    return matrix


def _one_line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + " …"
