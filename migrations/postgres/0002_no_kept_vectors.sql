-- Vectors of texts that are gone are no longer kept. The views of agents are made again afterwards.
DROP TABLE embedding_cache CASCADE;

-- Nothing reads it: the manifest has the digest of the file.
ALTER TABLE publication DROP COLUMN file_digest;
