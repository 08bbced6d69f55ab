-- Each vector is stored once, with the compartment of its chunk, and is searched where it is
-- stored. The vec0 tables with a second copy go; code drops them after this migration.
CREATE TABLE new_embedded (
    index_id     INTEGER NOT NULL REFERENCES embedding_index (id) ON DELETE CASCADE,
    chunk        INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    compartment  INTEGER NOT NULL,
    input_hash   TEXT NOT NULL,
    vector_hash  TEXT NOT NULL,  -- of the input hash and the vector: finds flipped bits
    vector       BLOB NOT NULL,  -- float32
    PRIMARY KEY (index_id, chunk)
) STRICT;
INSERT INTO new_embedded
    SELECT e.index_id, e.chunk, d.compartment, e.input_hash, e.vector_hash, e.vector
    FROM embedded e JOIN chunk c ON c.id = e.chunk JOIN document d ON d.id = c.document
    ORDER BY e.index_id, e.chunk;
DROP TABLE embedded;
ALTER TABLE new_embedded RENAME TO embedded;
CREATE INDEX embedded_by_chunk ON embedded (chunk);
CREATE INDEX embedded_by_compartment ON embedded (index_id, compartment);
ALTER TABLE embedding_share DROP COLUMN fast;

-- Which chunks, from the first rowid to the last, have changed with a generation, for the last
-- generations. A process that has words and vectors in memory reads only these again.
CREATE TABLE chunk_change (
    generation INTEGER NOT NULL,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL
) STRICT;
