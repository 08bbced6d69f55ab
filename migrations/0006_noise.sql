-- What the cosines of the index's model mean, measured on a fixed text sample: up to where unrelated
-- texts come, and related ones. NULL in an index from before, until something is embedded into it.
ALTER TABLE embedding_index ADD COLUMN noise_floor REAL;
ALTER TABLE embedding_index ADD COLUMN related_cosine REAL;
