-- What the scan found in a chunk: a JSON array of kinds. NULL for a chunk of a document without
-- findings, and for one that an earlier version stored: it has the kinds of its whole document.
ALTER TABLE chunk ADD COLUMN flags TEXT;
