"""The prefixes of models, by their names."""

from __future__ import annotations

import pytest

from rolebundle.embedding.provider import prefixes_for

RETRIEVE = "Represent this sentence for searching relevant passages: "
INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        # Ollama, Hugging Face, LM Studio and llama.cpp write the same model in their own ways.
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v2-moe", "search_query: ", "search_document: "),
        ("/models/nomic_embed_text-v1.5.Q8_0.gguf", "search_query: ", "search_document: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", INSTRUCT + " ", ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("qwen3-embedding:0.6b", INSTRUCT, ""),
        ("hf.co/Qwen/Qwen3-Embedding-8B-GGUF:Q4_K_M", INSTRUCT, ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", RETRIEVE, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("bge-m3", "", ""),
        ("BAAI/bge-small-en-v1.5", RETRIEVE, ""),
        ("BAAI/bge-large-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("all-MiniLM-L6-v2", "", ""),
        ("a model that nobody knows", "", ""),
        ("somee5-model", "", ""),
    ],
)
def test_a_model_has_the_prefixes_of_its_name(model: str, query: str, passage: str):
    assert prefixes_for(model) == (query, passage)


def test_an_override_replaces_the_table():
    assert prefixes_for("nomic-embed-text", ("", "")) == ("", "")
    assert prefixes_for("unknown", ("q> ", "p> ")) == ("q> ", "p> ")
