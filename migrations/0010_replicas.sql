-- Replicas: copies of a corpus with only what one agent may see.

-- In the corpus of a publisher: what was published, where to, and for whom.
CREATE TABLE publication (
    target           TEXT    NOT NULL PRIMARY KEY,  -- a folder, or an address with its scheme
    agent            TEXT    NOT NULL,  -- empty: for whoever can read the replica
    visibility       TEXT    NOT NULL,  -- JSON object: what the replica may hold
    publisher        TEXT    NOT NULL,  -- the name in its manifests
    key_id           TEXT    NOT NULL,  -- of the key that signed the last manifest
    generation       INTEGER NOT NULL,  -- rises with each change of what the replica holds
    purge_generation INTEGER NOT NULL,  -- rises with each purge of what the replica ever held
    content_digest   TEXT    NOT NULL,  -- of what the last replica holds
    file_digest      TEXT    NOT NULL,  -- SHA-256 of the staged replica
    published_at     TEXT    NOT NULL,  -- ISO 8601 in UTC, as all times
    refuses_at       TEXT    NOT NULL,  -- from then on replicas that were not renewed do not answer
    published_purges INTEGER NOT NULL,  -- the purge generation of the last replica
    carried          BLOB    NOT NULL   -- sorted hashes, 8 bytes each, of the ids that it ever held
) STRICT, WITHOUT ROWID;

-- In a replica: what it is a copy of. Nothing writes into a file with a row here but the publisher.
CREATE TABLE replica (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    manifest TEXT NOT NULL  -- JSON: the signed manifest
) STRICT;
