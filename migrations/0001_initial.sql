-- The corpus: sources, documents, chunks, the lexical index, and the identity of the embedding
-- indexes. The vectors themselves live in one vec0 table per index (vectors_<index_id>), which
-- code creates because its dimension is the model's.

CREATE TABLE corpus_state (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    corpus_id    TEXT    NOT NULL,
    generation   INTEGER NOT NULL,  -- rises with every write transaction that changes an answer
    documents    INTEGER NOT NULL,
    chunks       INTEGER NOT NULL
) STRICT;

CREATE TABLE source (
    id           INTEGER PRIMARY KEY,
    source_id    TEXT NOT NULL UNIQUE
) STRICT;

-- One row a file that was read; a file may hold many documents.
CREATE TABLE file (
    id           INTEGER PRIMARY KEY,
    location     TEXT NOT NULL UNIQUE,  -- absolute, as the machine knows it; never shown to agents
    path         TEXT NOT NULL,         -- relative to the ingested folder, forward slashes
    content_hash TEXT NOT NULL,
    recipe       TEXT NOT NULL          -- digest of reader, chunker and declared metadata
) STRICT;

CREATE TABLE document (
    id               INTEGER PRIMARY KEY,
    document_id      TEXT NOT NULL UNIQUE,
    file             INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    source           INTEGER NOT NULL REFERENCES source (id),
    title            TEXT NOT NULL,
    uri              TEXT NOT NULL,
    document_type    TEXT NOT NULL,
    domain           TEXT NOT NULL,
    trust_tier       TEXT NOT NULL
                     CHECK (trust_tier IN ('authoritative', 'preferred', 'general', 'untrusted')),
    updated_at       TEXT,
    language         TEXT NOT NULL,
    source_kind      TEXT NOT NULL,
    sensitivity      TEXT NOT NULL
                     CHECK (sensitivity IN ('public', 'group', 'internal', 'confidential')),
    origin           TEXT NOT NULL CHECK (origin IN ('internal', 'external', 'untrusted')),
    scope            TEXT NOT NULL,
    tags             TEXT NOT NULL,  -- JSON arrays from here on
    applicable_roles TEXT NOT NULL,
    excluded_roles   TEXT NOT NULL,
    retrieval_hints  TEXT NOT NULL,
    supersedes       TEXT NOT NULL
) STRICT;
CREATE INDEX document_by_file ON document (file);
CREATE INDEX document_by_source ON document (source);

-- "newer" replaces the document whose id or path is "superseded", now or whenever it is ingested.
CREATE TABLE supersession (
    newer        INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    superseded   TEXT NOT NULL,
    PRIMARY KEY (superseded, newer)
) STRICT, WITHOUT ROWID;
CREATE INDEX supersession_by_newer ON supersession (newer);

-- title, headings, tags and hints stand here as they are indexed, so that the external-content
-- lexical index can be checked against, and rebuilt from, this one table.
CREATE TABLE chunk (
    id               INTEGER PRIMARY KEY,
    chunk_id         TEXT NOT NULL UNIQUE,
    document         INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ordinal          INTEGER NOT NULL,
    title            TEXT NOT NULL,
    headings         TEXT NOT NULL,  -- JSON array
    content          TEXT NOT NULL,
    tags             TEXT NOT NULL,  -- JSON array: the document's and the chunk's own
    hints            TEXT NOT NULL,  -- JSON array
    content_type     TEXT NOT NULL
                     CHECK (content_type IN ('paragraph', 'table', 'list', 'code', 'excerpt')),
    content_hash     TEXT NOT NULL,
    start_line       INTEGER NOT NULL,
    end_line         INTEGER NOT NULL,
    page             INTEGER NOT NULL,
    applicable_roles TEXT NOT NULL,  -- JSON array: the chunk's own where it has any, else the document's
    excluded_roles   TEXT NOT NULL   -- JSON array: the document's and the chunk's own
) STRICT;
CREATE INDEX chunk_by_document ON chunk (document, ordinal);

CREATE VIRTUAL TABLE lexical USING fts5 (
    title, headings, content, tags, hints,
    content = 'chunk', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE embedding_index (
    id             INTEGER PRIMARY KEY,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    model_digest   TEXT NOT NULL,
    dimensions     INTEGER NOT NULL,
    query_prefix   TEXT NOT NULL,
    passage_prefix TEXT NOT NULL,
    chunker        TEXT NOT NULL,
    normalization  TEXT NOT NULL,
    vectors        INTEGER NOT NULL,  -- how many chunks have one
    active         INTEGER NOT NULL CHECK (active IN (0, 1)),
    reach          TEXT NOT NULL,     -- JSON: provider, model, url, prefixes; never a key
    started_at     TEXT NOT NULL,
    fast           TEXT NOT NULL      -- JSON: what is known of the fast companion; empty: none
) STRICT;
CREATE UNIQUE INDEX one_active_index ON embedding_index (active) WHERE active = 1;

-- Each stored vector, and what it was made of. A chunk without a row here waits for its vector.
-- vec0 holds the vectors once more, in blocks of a thousand: good to scan, and a hundred times
-- slower than this table to look single ones up in.
CREATE TABLE embedded (
    index_id     INTEGER NOT NULL REFERENCES embedding_index (id) ON DELETE CASCADE,
    chunk        INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    input_hash   TEXT NOT NULL,
    vector_hash  TEXT NOT NULL,  -- finds flipped bits: vec0 keeps no checksum of its own
    vector       BLOB NOT NULL,
    PRIMARY KEY (index_id, chunk)
) STRICT;
CREATE INDEX embedded_by_chunk ON embedded (chunk);

-- Vectors that left an index with their chunk, by what they were made of and by whom, so that text
-- which comes back under another name or in another chunk is not embedded again.
CREATE TABLE embedding_cache (
    id           INTEGER PRIMARY KEY,  -- rises, so the lowest is the oldest
    model        TEXT NOT NULL,
    input_hash   TEXT NOT NULL,
    vector       BLOB NOT NULL,
    UNIQUE (model, input_hash)
) STRICT;
