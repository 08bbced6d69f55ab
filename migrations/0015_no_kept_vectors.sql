-- Vectors of texts that are gone are no longer kept: a text that comes back is embedded again.
DROP TABLE embedding_cache;
