-- 0042: the change feed of sync protocol v3.
--
-- Goes out with 2.8.2, one release before the code that reads it, so that the
-- running version can live with it (review checklist, "schema migration").
-- Forward only.  Nothing here rewrites note or note_field.

CREATE TABLE change_feed (
    notebook_id  uuid        NOT NULL REFERENCES notebook (id) ON DELETE CASCADE,
    position     bigint      NOT NULL,              -- the cursor that clients send
    note_id      uuid        NOT NULL,
    field_name   text        NOT NULL,
    value        jsonb,                             -- NULL is a tombstone
    wall_ms      bigint      NOT NULL,
    counter      integer     NOT NULL CHECK (counter >= 0),
    device_id    text        NOT NULL,
    batch_id     uuid        NOT NULL,              -- makes a repeated push harmless
    accepted_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (notebook_id, position)
);

-- A repeated batch must find its first answer.  The relay keeps 500 batch ids
-- of each device; the unique index catches the race between two relay nodes.
CREATE UNIQUE INDEX change_feed_batch
    ON change_feed (device_id, batch_id, note_id, field_name);

-- Retention is 45 days.  It is a table setting and not an environment variable
-- since INC-118, where FEED_RETENTION_DAYS was read from the wrong file and the
-- trimmer cut the feed to 14 days.
CREATE TABLE feed_setting (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    retention_days  integer NOT NULL DEFAULT 45 CHECK (retention_days BETWEEN 30 AND 180)
);
INSERT INTO feed_setting DEFAULT VALUES;

-- Oldest cursor that still works.  Below it the relay answers MOSS-4101.
CREATE VIEW feed_floor AS
SELECT notebook_id, min(position) AS oldest_position, min(accepted_at) AS oldest_change
FROM change_feed
GROUP BY notebook_id;

-- The trimmer deletes at most 20,000 rows at a time and sleeps between, so that
-- a mistake can be stopped by a person before it has eaten the whole feed.
CREATE FUNCTION trim_change_feed(max_rows integer DEFAULT 20000) RETURNS bigint
LANGUAGE sql AS $$
    WITH doomed AS (
        SELECT notebook_id, position
        FROM change_feed
        WHERE accepted_at < now() - (SELECT make_interval(days => retention_days) FROM feed_setting)
        ORDER BY accepted_at
        LIMIT max_rows
    ), gone AS (
        DELETE FROM change_feed USING doomed
        WHERE change_feed.notebook_id = doomed.notebook_id
          AND change_feed.position = doomed.position
        RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;
