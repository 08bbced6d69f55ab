-- What people and agents state about the corpus: marks on passages and documents, decisions,
-- remembered facts, and the baselines of gates. Decisions are append-only.

-- The state of the evidence in a passage or a document. A mark ends when the text changes.
CREATE TABLE mark (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('chunk', 'document')),
    target     TEXT NOT NULL,  -- chunk_id or document_id
    text_hash  TEXT NOT NULL,  -- of the marked text
    state      TEXT NOT NULL
               CHECK (state IN ('rejected', 'disputed', 'tool_verified', 'supervisor_verified')),
    marked_by  TEXT NOT NULL,
    authority  TEXT NOT NULL CHECK (authority IN ('owner', 'agent')),
    reason     TEXT NOT NULL,
    marked_at  TEXT NOT NULL,
    UNIQUE (kind, target)
) STRICT;

-- Decisions are numbered within their scope, so that a number shows nothing of other scopes.
CREATE TABLE decision (
    scope       TEXT    NOT NULL,
    number      INTEGER NOT NULL CHECK (number > 0),
    content     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('active', 'proposed')),
    effect      TEXT    NOT NULL CHECK (effect IN ('warn', 'require_approval', 'block')),
    action      TEXT    NOT NULL,  -- the action that it is about; empty: every action
    about       TEXT    NOT NULL,  -- JSON array: further words of the intents that it is about
    supersedes  TEXT    NOT NULL,  -- JSON array: numbers of decisions of the same scope
    decided_by  TEXT    NOT NULL,
    authority   TEXT    NOT NULL CHECK (authority IN ('owner', 'agent')),
    valid_from  TEXT    NOT NULL,  -- ISO 8601 in UTC
    valid_until TEXT,
    recorded_at TEXT    NOT NULL,
    PRIMARY KEY (scope, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_end (
    scope    TEXT    NOT NULL,
    number   INTEGER NOT NULL,
    ended_by TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    ended_at TEXT    NOT NULL,
    PRIMARY KEY (scope, number),
    FOREIGN KEY (scope, number) REFERENCES decision (scope, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What is known of a remembered fact besides its document, which has the text.
CREATE TABLE remembered (
    document        INTEGER PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    fact_hash       TEXT    NOT NULL,  -- of the normalized fact, its scope and its sensitivity
    source_document TEXT    NOT NULL,  -- document_id of its source; empty for an address
    remembered_by   TEXT    NOT NULL,
    count           INTEGER NOT NULL CHECK (count > 0),  -- how often it was filed
    first_at        TEXT    NOT NULL,
    last_at         TEXT    NOT NULL,
    promoted_by     TEXT    NOT NULL,  -- empty: not promoted
    digest          BLOB    NOT NULL
) STRICT;
CREATE INDEX remembered_by_fact ON remembered (fact_hash);
CREATE INDEX remembered_by_source ON remembered (source_document);

-- A fourth origin: what an agent filed. SQLite cannot change a CHECK, so the column is made again.
ALTER TABLE document RENAME COLUMN origin TO former_origin;
ALTER TABLE document ADD COLUMN origin TEXT NOT NULL DEFAULT 'untrusted'
    CHECK (origin IN ('internal', 'external', 'agent', 'untrusted'));
UPDATE document SET origin = former_origin;
ALTER TABLE document DROP COLUMN former_origin;

-- The state of the files that a contract names, when its gate was started.
CREATE TABLE gate_baseline (
    contract      TEXT NOT NULL PRIMARY KEY,  -- absolute path
    contract_hash TEXT NOT NULL,
    baseline      TEXT NOT NULL,  -- JSON: what contracts/gate.py describes
    started_at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents that are decisions are looked up for each request.
CREATE INDEX decision_document ON document (id) WHERE document_type = 'decision';
