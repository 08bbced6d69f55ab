CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    role TEXT NOT NULL,
    action TEXT NOT NULL,
    query TEXT NOT NULL,
    bundle_digest TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    blocked TEXT NOT NULL,
    details TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    log_id TEXT NOT NULL,
    rows INTEGER NOT NULL,
    hash TEXT NOT NULL,
    mode TEXT NOT NULL,
    query TEXT NOT NULL
) STRICT;
CREATE INDEX entry_of_agent ON entry (agent, seq);
