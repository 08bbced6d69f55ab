"""What a model is given: prefixed texts that every tokenizer and every server can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def prepared(texts: Sequence[str], prefix: str) -> list[str]:
    """The texts as they are embedded: readable, with the model's prefix before each."""
    return [prefix + readable(text) for text in texts]


def readable(text: str) -> str:
    """The text without what would break a tokenizer or end a C string early.

    A NUL cuts the text, unsaid, in a server that takes it as a C string, and a lone surrogate has
    no UTF-8 form. Neither carries meaning: the one becomes a space, the other U+FFFD.
    """
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The texts in order, at most ``size`` at a time."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]
