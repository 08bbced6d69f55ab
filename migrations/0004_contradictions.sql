-- The ids or paths of documents that a document declares to contradict, as a JSON array.
ALTER TABLE document ADD COLUMN contradicts TEXT NOT NULL DEFAULT '[]';
