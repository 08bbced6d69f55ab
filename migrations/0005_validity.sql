-- From when and until when a document applies, both included: ISO 8601 in UTC; NULL for no bound.
ALTER TABLE document ADD COLUMN valid_from TEXT;
ALTER TABLE document ADD COLUMN valid_until TEXT;
