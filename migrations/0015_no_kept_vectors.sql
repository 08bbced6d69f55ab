-- Vectors of texts that are gone are no longer kept: a text that comes back is embedded again.
DROP TABLE embedding_cache;

-- Nothing reads it: the manifest has the digest of the file.
ALTER TABLE publication DROP COLUMN file_digest;
