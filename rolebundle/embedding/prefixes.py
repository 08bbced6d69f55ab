"""What a model wants to read before a query and before a passage.

Models trained with an instruction lose quality without it, and say nothing. Model cards are the
source of each line; a model that is not named here gets no prefix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The text put before each query and before each passage."""

    query: str = ""
    passage: str = ""


_RETRIEVE = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

# The first pattern found in the name decides: the particular stands before the general. Names
# come as Ollama tags, Hugging Face ids, GGUF file names and folder names.
_BY_NAME: tuple[tuple[str, Prefixes], ...] = (
    # https://huggingface.co/intfloat/multilingual-e5-large-instruct: a space after "Query:"
    (r"\be5-.*instruct", Prefixes(_INSTRUCT + " ")),
    # https://huggingface.co/intfloat/e5-base-v2
    (r"\be5-", Prefixes("query: ", "passage: ")),
    # https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 (and v1, v2-moe)
    (r"\bnomic-embed-text\b", Prefixes("search_query: ", "search_document: ")),
    # https://huggingface.co/nomic-ai/modernbert-embed-base
    (r"\bmodernbert-embed\b", Prefixes("search_query: ", "search_document: ")),
    # https://ai.google.dev/gemma/docs/embeddinggemma/model_card#prompt-instructions
    (r"\bembeddinggemma\b", Prefixes("task: search result | query: ", "title: none | text: ")),
    # https://huggingface.co/Qwen/Qwen3-Embedding-0.6B, config_sentence_transformers.json
    (r"\bqwen3-embedding\b", Prefixes(_INSTRUCT)),
    # https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1
    (r"\bmxbai-embed-", Prefixes(_RETRIEVE)),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0; Ollama names it "…-embed2"
    (r"\barctic-embed(2|.*-v2)", Prefixes("query: ")),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l
    (r"\barctic-embed\b", Prefixes(_RETRIEVE)),
    # https://huggingface.co/BAAI/bge-m3: "no need to add instructions"
    (r"\bbge-m3\b", Prefixes()),
    # https://huggingface.co/BAAI/bge-large-zh-v1.5, model list
    (r"\bbge-.*noinstruct", Prefixes()),
    (r"\bbge-(small|base|large)-zh\b", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    # https://huggingface.co/BAAI/bge-large-en-v1.5
    (r"\bbge-(small|base|large)\b", Prefixes(_RETRIEVE)),
    # https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: none
    (r"\ball-minilm\b", Prefixes()),
)


def prefixes_for(model: str, override: tuple[str, str] | None = None) -> Prefixes:
    """The prefixes of a model.

    Args:
        model: its name, as a server, a folder or a model card writes it.
        override: query and passage prefix, for a model that the table does not know or whose
            deployment adds them by itself.
    """
    if override is not None:
        return Prefixes(*override)
    name = model.casefold().replace("_", "-")
    return next((found for pattern, found in _BY_NAME if re.search(pattern, name)), Prefixes())
