"""The texts that a model reads: their content, the model's prefixes, and batches.

Models that were trained with an instruction before the text lose quality without it, and report
nothing. A model that is not in the table gets no prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


_RETRIEVE = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

# The first pattern that matches the name applies, so specific patterns come before general ones.
# Names are Ollama tags, Hugging Face ids, GGUF file names and folder names. The model cards are the
# sources.
_BY_NAME: tuple[tuple[str, tuple[str, str]], ...] = (
    # https://huggingface.co/intfloat/multilingual-e5-large-instruct: a space after "Query:"
    (r"\be5-.*instruct", (_INSTRUCT + " ", "")),
    # https://huggingface.co/intfloat/e5-base-v2
    (r"\be5-", ("query: ", "passage: ")),
    # https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 (and v1, v2-moe)
    (r"\bnomic-embed-text\b", ("search_query: ", "search_document: ")),
    # https://huggingface.co/nomic-ai/modernbert-embed-base
    (r"\bmodernbert-embed\b", ("search_query: ", "search_document: ")),
    # https://ai.google.dev/gemma/docs/embeddinggemma/model_card#prompt-instructions
    (r"\bembeddinggemma\b", ("task: search result | query: ", "title: none | text: ")),
    # https://huggingface.co/Qwen/Qwen3-Embedding-0.6B, config_sentence_transformers.json
    (r"\bqwen3-embedding\b", (_INSTRUCT, "")),
    # https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1
    (r"\bmxbai-embed-", (_RETRIEVE, "")),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0; Ollama names it "…-embed2"
    (r"\barctic-embed(2|.*-v2)", ("query: ", "")),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l
    (r"\barctic-embed\b", (_RETRIEVE, "")),
    # https://huggingface.co/BAAI/bge-m3: "no need to add instructions"
    (r"\bbge-m3\b", ("", "")),
    # https://huggingface.co/BAAI/bge-large-zh-v1.5, model list
    (r"\bbge-.*noinstruct", ("", "")),
    (r"\bbge-(small|base|large)-zh\b", ("为这个句子生成表示以用于检索相关文章：", "")),
    # https://huggingface.co/BAAI/bge-large-en-v1.5
    (r"\bbge-(small|base|large)\b", (_RETRIEVE, "")),
    # https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: none
    (r"\ball-minilm\b", ("", "")),
)


def embedding_text(title: str, headings: Sequence[str], content: str, tags: Sequence[str]) -> str:
    """What is embedded of a passage: its title, its heading path, its content, its tags."""
    lines = [" › ".join(dict.fromkeys((title, *headings))), content]
    return "\n".join([*lines, ", ".join(tags)] if tags else lines)


def input_hash(text: str) -> str:
    """The key of a text's vector, in an index and in the caches."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def prefixes_for(model: str, override: tuple[str, str] | None = None) -> tuple[str, str]:
    """The texts before each query and before each passage of a model.

    Args:
        model: its name, as a server, a folder or a model card writes it.
        override: query and passage prefix, for a model that is not in the table or whose server
            adds them by itself.
    """
    if override is not None:
        return override
    name = model.casefold().replace("_", "-")
    return next((prefixes for pattern, prefixes in _BY_NAME if re.search(pattern, name)), ("", ""))


def prepared(texts: Sequence[str], prefix: str) -> list[str]:
    """The texts as they are embedded: made readable, with the model's prefix before each."""
    return [prefix + readable(text) for text in texts]


def readable(text: str) -> str:
    """The text without NUL characters and unpaired surrogates.

    A server that reads C strings would cut the text at a NUL without an error, and an unpaired
    surrogate has no UTF-8 form. A NUL becomes a space, a surrogate becomes U+FFFD.
    """
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def batches(texts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The texts in order, at most ``size`` at a time."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]
