-- Vectors of texts that are gone are no longer kept. The views of agents are made again afterwards.
DROP TABLE embedding_cache CASCADE;
