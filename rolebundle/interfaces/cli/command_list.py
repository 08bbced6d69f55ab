"""The commands, in the order and with the sections of `rolebundle --help`.

Each is in the module of its name. The help prints these texts, so that no command is imported for
it.
"""

COMMANDS = {
    "Start here": {
        "init": "Propose what the documents of a folder are, and a first role",
        "ingest": "Read files and folders, or what was read before, into the corpus",
        "retrieve": "Find what a role may use for a task",
        "get": "Show passages, documents, or parts of them",
        "why": "Explain why a passage was selected, or why not",
        "overlay": "List, check, try and write the overlays of roles",
        "connect": "Print or write the configuration of a host",
        "status": "What the corpus holds, and the state of its indexes",
    },
    "Documents": {
        "ls": "List documents",
        "grep": "Find lines by an exact text or a regular expression",
        "watch": "Update the corpus whenever files change",
        "corpus": "Care for the file: check, back up, purge, embed, ...",
    },
    "Answers": {
        "compare": "Compare what several roles get for a task",
        "replay": "Repeat a saved answer, and report what has changed",
        "inspect": "Show answers, roles and the corpus in a browser",
        "verify": "Check the quotes, citations and figures of a draft",
        "eval": "Measure retrieval on a golden set or a test collection",
    },
    "What people and agents add": {
        "decisions": "Add, list, show and end decisions",
        "mark": "Mark passages as rejected, disputed or verified",
        "remember": "File facts with their sources",
        "check": "Compare an intent with the decisions",
        "gate": "Check with a contract that work is done",
    },
    "Agents": {
        "policy": "Which agent may see what, and who asked what",
        "mcp": "Serve MCP on standard input and output",
        "serve": "Serve JSON-RPC on standard input and output",
        "replica": "Publish and pull replicas of what one agent may see",
    },
}
"""Section → command → what it does, in a few words."""

CORPUS = {
    "Commands": {
        "doctor": "Check and repair the file",
        "backup": "Copy it while others use it",
        "restore": "Replace it by a backup",
        "purge": "Erase documents and every byte of them",
        "roots": "List, move and remove the ingested folders",
        "embed": "Fill the vectors, or build another model's index",
        "quarantine": "List, release and drop dangerous documents",
        "formats": "Which formats are read",
    }
}
"""Those of `rolebundle corpus`."""

OVERLAY = {"Commands": {"demo": "Show what three roles get from a sample corpus"}}
"""Those of `rolebundle overlay` that have a module of their own."""

POLICY = {
    "Commands": {
        "audit": "Set, read and verify who asked what",
        "bridges": "Find close passages in different scopes",
    }
}
"""Those of `rolebundle policy` that have a module of their own."""

MOVED = {
    "audit": "policy audit",
    "backup": "corpus backup",
    "bridges": "policy bridges",
    "decide": "decisions add",
    "demo": "overlay demo",
    "doctor": "corpus doctor",
    "embed": "corpus embed",
    "formats": "corpus formats",
    "multi-get": "get",
    "publish": "replica publish",
    "pull": "replica pull",
    "purge": "corpus purge",
    "quarantine": "corpus quarantine",
    "restore": "corpus restore",
    "roots": "corpus roots",
    "scopes": "policy",
    "trust": "gate approve",
    "update": "ingest",
}
"""Former commands → what to type instead."""
