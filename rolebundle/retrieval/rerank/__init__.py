"""Reranking by a model: how it scores passages, and the cache that keeps what it embedded."""
