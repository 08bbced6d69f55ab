-- A seal for each of the small tables, so that damage to one does not cost what the others hold: a
-- digest of all rows of the table with this name, also of the schema and of small records of the
-- indexes' own tables. Each transaction ends with writing those that changed.
DROP TABLE seal;
CREATE TABLE seal (
    name   TEXT NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
