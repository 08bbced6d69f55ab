-- Documents as people have them: dates that nobody declared, attributes of any name, anchors in
-- formats that have no lines, and the folders that a corpus is made from.

-- ISO 8601 in UTC: when the file was last committed or changed, if no date is declared.
ALTER TABLE document ADD COLUMN inferred_at TEXT;
-- JSON object, each value an array of strings: front matter keys that are not governance, and
-- properties of a format such as a mail's sender.
ALTER TABLE document ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}';

-- Where in its document a chunk is, if lines do not tell it: "p. 3", "slide 4", "cell 5".
ALTER TABLE chunk ADD COLUMN anchor TEXT NOT NULL DEFAULT '';

-- The size in bytes and the time of the last change, as they were when the file was read; 0 if
-- unknown.
ALTER TABLE file ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE file ADD COLUMN modified_ns INTEGER NOT NULL DEFAULT 0;

-- The folders and files that were ingested, and how.
CREATE TABLE root (
    location  TEXT    NOT NULL PRIMARY KEY,  -- absolute path
    prefix    TEXT    NOT NULL,  -- how the paths of its files begin; empty if it is their base
    source_id TEXT    NOT NULL,  -- the default source of its documents
    options   TEXT    NOT NULL,  -- JSON object: RootOptions without its defaults
    documents INTEGER NOT NULL,  -- how many it had after the last ingest
    synced_at TEXT    NOT NULL   -- when a whole ingest of it changed the corpus last; or empty
) STRICT, WITHOUT ROWID;

-- References name documents by the paths of their files.
CREATE INDEX file_by_path ON file (path);
