"""A corpus in PostgreSQL: its connection, how it is opened, and its indexes."""
