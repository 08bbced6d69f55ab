"""The manifest beside a backup, and the answers of `corpus backup` and `corpus restore`."""

from typing import Literal

from rolebundle.contracts.base import Contract


class BackedUpFile(Contract):
    """A file of a backup. ``sha256`` is hexadecimal."""

    name: str
    bytes: int
    sha256: str


class BackupManifest(Contract):
    """What a backup holds: the file FILE.manifest.json beside it.

    Attributes:
        version: of this format.
        created_at: ISO 8601 in UTC.
        corpus_id: identity of the corpus.
        schema_version: version of its schema.
        generation: how many writes it had.
        documents: number of documents; ``chunks`` likewise.
        policy_digest: digest of the policy in the corpus; empty if it has none.
        overlays: digest of each role's overlay at that time. The overlays are not in the backup.
        corpus: the corpus file.
        audit: the audit's file; null if there was none.
        audit_head: ``seq:hash`` of the audit's last row; empty if there was no intact audit.
    """

    version: Literal[1] = 1
    created_at: str
    corpus_id: str
    schema_version: int
    generation: int
    documents: int
    chunks: int
    policy_digest: str
    overlays: dict[str, str]
    corpus: BackedUpFile
    audit: BackedUpFile | None
    audit_head: str


class BackupReport(Contract):
    """`corpus backup`.

    Attributes:
        location: path of the backup.
        files: the paths of all of its files.
        manifest: what it holds.
        removed: paths of older backups that the rotation removed.
        warnings: what the owner should look at.
    """

    location: str
    files: list[str]
    manifest: BackupManifest
    removed: list[str] = []
    warnings: list[str] = []


class RestoreReport(Contract):
    """`corpus restore`.

    Attributes:
        backup: path of the backup.
        location: path of the corpus that it replaces.
        done: false if this is only what `--yes` would do.
        created_at: when the backup was made; empty if it has no manifest.
        documents: number of documents in the backup; ``chunks`` likewise.
        replaced: under which name the former file is kept; null if there was none, or not yet done.
        audit: ``kept`` if the present audit stays, because it continues that of the backup;
            ``restored`` if that of the backup takes its place; ``none`` if there is none.
        purges_undone: number of purges after the backup, whose documents come back.
        overlays_changed: roles whose overlay differs from that at the time of the backup.
    """

    backup: str
    location: str
    done: bool
    created_at: str
    documents: int
    chunks: int
    replaced: str | None
    audit: Literal["kept", "restored", "none"]
    purges_undone: int
    overlays_changed: list[str]
