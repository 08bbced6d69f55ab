-- Where a document's authority comes from, and hashes that find damage that SQLite does not detect.

-- JSON arrays. "self_declared": the governance keys whose value is the document's own declaration;
-- "unknown" if an earlier version stored it. "refused_claims": what the document declared and may not
-- have, each as "key: value".
ALTER TABLE document ADD COLUMN self_declared TEXT NOT NULL DEFAULT '[]';
ALTER TABLE document ADD COLUMN refused_claims TEXT NOT NULL DEFAULT '[]';
UPDATE document SET self_declared = '["unknown"]'
    WHERE trust_tier IN ('authoritative', 'preferred') OR supersedes <> '[]';

-- Which documents may be superseded: none if the owner does not allow the claim, those of the same
-- source, also less trusted ones of others if the owner gave the newer document its source, or any
-- if the owner declared or allowed it.
ALTER TABLE supersession ADD COLUMN reach TEXT NOT NULL DEFAULT 'source'
    CHECK (reach IN ('none', 'source', 'less_trusted', 'any'));

-- Manifests in nested checkouts that the owner has approved, by their content.
CREATE TABLE approved_manifest (
    location     TEXT NOT NULL PRIMARY KEY,  -- absolute path of the manifest
    content_hash TEXT NOT NULL,
    approved_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Governance flags of ingests, which hold at and below the path for which they were given.
CREATE TABLE path_flags (
    location TEXT NOT NULL PRIMARY KEY,  -- real path; empty for every path
    flags    TEXT NOT NULL               -- JSON object; null lifts a flag of a folder above
) STRICT, WITHOUT ROWID;

-- Digests of the values of a row, and of what belongs to it. Empty until code has computed them.
ALTER TABLE file ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE document ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE chunk ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE scanned ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE embedding_cache ADD COLUMN digest BLOB NOT NULL DEFAULT x'';

-- Digests of all rows of the small tables, and of the small records of the indexes' own tables.
-- Each transaction ends with writing them.
CREATE TABLE seal (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    tables       BLOB NOT NULL DEFAULT x'',
    indexes      BLOB NOT NULL DEFAULT x''
) STRICT;

-- Whether an answer needs a record in the audit, and the audit's head when the corpus was last
-- written. A missing or shortened audit is noticed by it.
CREATE TABLE audit_state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    required INTEGER NOT NULL CHECK (required IN (0, 1)),
    log_id   TEXT NOT NULL,
    rows     INTEGER NOT NULL,
    hash     TEXT NOT NULL
) STRICT;
