-- Purges: that something was erased, and how much; never what. The rows of what was purged go in the
-- transaction that adds a row here. Until it says 'done', copies of them may stand in places of the
-- file that hold nothing any more, or in the log: whoever writes next goes on from there.
CREATE TABLE purge (
    id           TEXT    NOT NULL PRIMARY KEY,  -- random
    purged_at    TEXT    NOT NULL,
    documents    INTEGER NOT NULL,
    chunks       INTEGER NOT NULL,
    vectors      INTEGER NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('erased', 'rewritten', 'done'))
) STRICT, WITHOUT ROWID;
