"""A model that onnxruntime can run, with the functions that prepare its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Network(NamedTuple):
    """A model that was read from its file.

    Attributes:
        token_ids: the tokens of a text, with the two marks.
        inputs: the inputs of the graph for tokens; its first output is a vector for each token.
        graph: the graph with its weights, in the format of ONNX.
    """

    token_ids: Callable[[str], list[int]]
    inputs: Callable[[list[int]], dict[str, Any]]
    graph: bytes
