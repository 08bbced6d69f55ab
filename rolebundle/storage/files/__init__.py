"""SQLite files of any kind: their formats, errors, locks and values."""
