"""The commands, in the order and with the sections of `rolebundle --help`.

Each is in the module of its name, `-` as `_`. The help prints these texts, so that no command is
imported for it.
"""

SECTIONS = {
    "Documents": {
        "init": "Propose what the documents of a folder are, and a first role",
        "ingest": "Read files and folders into the corpus",
        "update": "Read all ingested folders again",
        "watch": "Update the corpus whenever files change",
        "roots": "List, move and remove the ingested folders",
        "ls": "List documents",
        "status": "What the corpus holds, and the state of its indexes",
        "embed": "Fill the vectors, or build another model's index",
        "formats": "Which formats are read",
    },
    "Answers": {
        "retrieve": "Find what a role may use for a task",
        "grep": "Find lines by an exact text or a regular expression",
        "get": "Show a passage, a document, or a part of one",
        "multi-get": "Show several of them",
        "why": "Explain why a passage was selected, or why not",
        "compare": "Compare what several roles get for a task",
        "replay": "Repeat a saved answer, and report what has changed",
        "inspect": "Show answers, roles and the corpus in a browser",
        "verify": "Check the quotes, citations and figures of a draft",
        "eval": "Measure retrieval on a golden set or a test collection",
    },
    "Roles and rules": {
        "overlay": "List, check, try and write the overlays of roles",
        "scopes": "Set, show and check which agent may see what",
        "quarantine": "List, release and drop dangerous documents",
        "bridges": "Find close passages in different scopes",
    },
    "What people and agents add": {
        "decide": "Record a decision",
        "decisions": "List, show and end decisions",
        "check": "Compare an intent with the decisions",
        "mark": "Mark passages as rejected, disputed or verified",
        "remember": "File facts with their sources",
        "gate": "Check with a contract that work is done",
    },
    "Agents": {
        "connect": "Print or write the configuration of a host",
        "mcp": "Serve MCP on standard input and output",
        "serve": "Serve JSON-RPC on standard input and output",
        "schema": "Print the JSON Schema of a request or an answer",
    },
    "The corpus file": {
        "doctor": "Check and repair it",
        "backup": "Copy it while others use it",
        "restore": "Replace it by a backup",
        "purge": "Erase documents and every byte of them",
        "audit": "Set, read and verify who asked what",
        "replica": "Publish and pull replicas of what one agent may see",
    },
    "Help": {
        "demo": "Show what three roles get from a sample corpus",
        "completion": "Print the completion script of a shell",
        "man": "Print the manual page with the help of all commands",
    },
}
"""Section → command → what it does, in a few words."""

COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
