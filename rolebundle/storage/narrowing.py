"""What :meth:`Corpus.narrow` puts in front of the tables, so that only what may be seen is there.

A temporary view takes the place of the table whose name it has. What every answer is made of goes
through one of them; what nobody may see at all (`policy`) is read by its full name where it is
asked for on purpose.
"""

from __future__ import annotations

_SEEN = "(SELECT compartment FROM temp.visible)"
_SEEN_DOCUMENT = f"main.document d WHERE d.compartment IN {_SEEN}"
NARROWING = (
    "CREATE TEMP TABLE visible (compartment INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE shown_state (generation INTEGER NOT NULL)",
    f"CREATE TEMP VIEW scanned AS SELECT * FROM main.scanned "
    f"WHERE EXISTS (SELECT 1 FROM {_SEEN_DOCUMENT} AND d.id = scanned.document)",
    f"CREATE TEMP VIEW compartment AS SELECT * FROM main.compartment WHERE id IN {_SEEN}",
    f"CREATE TEMP VIEW document AS SELECT * FROM main.document WHERE compartment IN {_SEEN}",
    "CREATE TEMP VIEW chunk AS SELECT c.* FROM main.chunk c CROSS JOIN main.document d "
    "ON d.id = c.document CROSS JOIN temp.visible v ON v.compartment = d.compartment",
    "CREATE TEMP VIEW file AS SELECT * FROM main.file "
    f"WHERE EXISTS (SELECT 1 FROM {_SEEN_DOCUMENT} AND d.file = file.id)",
    "CREATE TEMP VIEW source AS SELECT * FROM main.source "
    f"WHERE EXISTS (SELECT 1 FROM {_SEEN_DOCUMENT} AND d.source = source.id)",
    "CREATE TEMP VIEW supersession AS SELECT * FROM main.supersession "
    f"WHERE EXISTS (SELECT 1 FROM {_SEEN_DOCUMENT} AND d.id = newer)",
    "CREATE TEMP VIEW embedded AS SELECT e.* FROM main.embedded e CROSS JOIN chunk c "
    "ON c.id = e.chunk",
    "CREATE TEMP VIEW embedding_share AS SELECT * FROM main.embedding_share "
    f"WHERE compartment IN {_SEEN}",
    "CREATE TEMP VIEW embedding_cache AS SELECT * FROM main.embedding_cache WHERE 0",
    # How much was erased, and when, tells of documents that were not the agent's to see.
    "CREATE TEMP VIEW purge AS SELECT * FROM main.purge WHERE 0",
    "CREATE TEMP VIEW corpus_state AS SELECT only_row, corpus_id, "
    "(SELECT coalesce(max(generation), 0) FROM temp.shown_state) AS generation, "
    "(SELECT coalesce(sum(documents), 0) FROM compartment) AS documents, "
    "(SELECT coalesce(sum(chunks), 0) FROM compartment) AS chunks FROM main.corpus_state",
)
"""A statement each; a test holds them against the schema."""
