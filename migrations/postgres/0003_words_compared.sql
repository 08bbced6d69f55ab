-- The words are stored as they are compared (rolebundle/text/spellings.py), with the names of files:
-- a chunk has six columns, so its keys are (chunk * 6 + column) * 2^24 + offset. Code writes them
-- again after this migration, from the chunks.
TRUNCATE posting, chunk_length;
