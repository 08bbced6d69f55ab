-- Who may see what. A compartment holds documents that any agent may either see or not see
-- together: one scope, one sensitivity, one set of the policy's deny patterns that match the path.
-- Each has a lexical index and, for each embedding index, a table of vectors of its own
-- (lexical_<id>, vectors_<index>_<id>), so that nothing that is computed for an agent, no frequency
-- of a term and no neighbour, depends on what it may not see. Code creates these tables, and fills
-- them after this migration.
CREATE TABLE compartment (
    id           INTEGER PRIMARY KEY,
    scope        TEXT    NOT NULL,
    sensitivity  TEXT    NOT NULL
                 CHECK (sensitivity IN ('public', 'group', 'internal', 'confidential')),
    denied       TEXT    NOT NULL,  -- JSON array, sorted: the deny patterns that match
    quarantined  INTEGER NOT NULL CHECK (quarantined IN (0, 1)),  -- no agent sees such a one
    documents    INTEGER NOT NULL,
    chunks       INTEGER NOT NULL,
    UNIQUE (scope, sensitivity, denied, quarantined)
) STRICT;

ALTER TABLE document ADD COLUMN compartment INTEGER NOT NULL DEFAULT 0;
CREATE INDEX document_by_compartment ON document (compartment);

-- The policy in force, as it was set. A corpus that once had a row here denies whoever it does not
-- name, also where the row can no longer be read.
CREATE TABLE policy (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    content      TEXT    NOT NULL,
    format       TEXT    NOT NULL CHECK (format IN ('toml', 'json')),
    location     TEXT    NOT NULL,  -- the file that must still say the same; empty: only this row
    digest       TEXT    NOT NULL,
    set_at       TEXT    NOT NULL
) STRICT;

DROP TABLE lexical;

-- What the scan at the door found in a document; none, no row. The original is the text before
-- what was hidden in it was taken out; empty where nothing was.
CREATE TABLE scanned (
    document     INTEGER PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    verdict      TEXT    NOT NULL CHECK (verdict IN ('label', 'quarantine', 'released')),
    content_hash TEXT    NOT NULL,  -- of what was found and where; a release holds while it stands
    kinds        TEXT    NOT NULL,  -- JSON array: what kinds of things were found
    findings     TEXT    NOT NULL,  -- JSON array: each with its place in the original
    original     TEXT    NOT NULL
) STRICT;

-- What an embedding index has of a compartment.
CREATE TABLE embedding_share (
    index_id     INTEGER NOT NULL REFERENCES embedding_index (id) ON DELETE CASCADE,
    compartment  INTEGER NOT NULL REFERENCES compartment (id) ON DELETE CASCADE,
    vectors      INTEGER NOT NULL,
    fast         TEXT    NOT NULL,  -- JSON: what is known of the fast companion; empty: none
    PRIMARY KEY (index_id, compartment)
) STRICT, WITHOUT ROWID;

ALTER TABLE embedding_index DROP COLUMN vectors;
ALTER TABLE embedding_index DROP COLUMN fast;
