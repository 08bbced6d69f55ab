"""The staged replica of a target: whether it can be changed in place, and what was removed from it.

Erased rows leave traces in a file: words in the segments of an index, copies of rows in pages that
were split. So a replica is built again if anything that it held since it was built must not be seen
any more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import RolebundleError, StorageError
from rolebundle.policy.audience import Audience
from rolebundle.replication.signatures import PrivateKey, key_id
from rolebundle.replication.verify import verify_replica
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.files.partial import partial_file, sync_file
from rolebundle.storage.opening import open_reader
from rolebundle.storage.records.publications import Publication
from rolebundle.storage.records.replica import stored_manifest
from rolebundle.storage.replicas.visible_content import ContentKeys, content_keys, has_any


class ReusableReplica(NamedTuple):
    """A staged replica that can be changed in place.

    Attributes:
        manifest: the manifest in it.
        removed: what it held since it was built, and the corpus does not have any more.
    """

    manifest: ReplicaManifest
    removed: ContentKeys


def find_reusable(
    source: Corpus, staged_path: Path, audience: Audience, last: Publication, key: PrivateKey
) -> tuple[ReusableReplica | None, str]:
    """The staged replica, if it can be changed in place; else the reason to build it again.

    Nothing is signed that was not built here: it must be the file that was recorded, or is verified
    as by `pull`.

    Args:
        source: the corpus, restricted to the audience.
        staged_path: the staged replica; there may be none.
        audience: for whom it is published now.
        last: the last publication to this target.
        key: the publisher's key.
    """
    if last.is_outdated:
        return None, "documents of it were purged"
    if not staged_path.exists():
        return None, "the last one is gone" if last.generation else "it is the first"
    if last.key_id not in ("", key_id(key.public_key())):
        return None, "it has another key, whose public key its readers need"
    try:
        manifest = _manifest_of(staged_path, last, key)
        removed = _held_since_built(staged_path).difference(content_keys(source))
    except RolebundleError as error:
        return None, f"the last one cannot be used: {error.message}"
    if manifest.corpus_id != corpus_counts(source).corpus_id:
        return None, "the last one is of another corpus"
    if (manifest.agent, last.visibility) != (audience.agent, audience.visibility()):
        return None, "it is for another agent, or the agent may see something else"
    if has_any(source, removed):
        return None, "the agent may no longer see some of it"
    return ReusableReplica(manifest, removed), ""


def _manifest_of(staged_path: Path, last: Publication, key: PrivateKey) -> ReplicaManifest:
    """The manifest in a sound staged replica.

    If a publish was killed after it recorded its replica, the file is the one before.

    Raises:
        CorpusCorrupt, WrongFile: it is not sound.
    """
    # To verify a replica takes ten times as long as to read it.
    if sha256_of(staged_path) != last.file_digest:
        return verify_replica(staged_path, str(staged_path), key.public_key()).manifest
    with open_reader(staged_path) as staged:
        return SignedManifest.model_validate_json(stored_manifest(staged)).manifest


def _held_since_built(staged_path: Path) -> ContentKeys:
    """What a staged replica holds, and what was removed from it since it was built.

    Raises:
        StorageError: what was removed is not known.
    """
    try:
        documents, texts = json.loads(_removed_path(staged_path).read_bytes())
        removed = ContentKeys(frozenset(documents), frozenset(texts))
    except FileNotFoundError:
        removed = ContentKeys()
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            "staging_unreadable",
            f"{_removed_path(staged_path)}: cannot be read",
            "delete the folder of this file and publish again",
        ) from error
    with open_reader(staged_path) as staged:
        return content_keys(staged).union(removed)


def save_removed(staged_path: Path, removed: ContentKeys) -> None:
    """Store what was removed from a staged replica since it was built.

    Store it before a replica that was changed in place gets its name, and after one that was built
    anew: if the process is killed between the two, too much is stored, and not too little.

    Raises:
        OSError: it cannot be written.
    """
    path = _removed_path(staged_path)
    with partial_file(path) as partial:
        partial.write_text(json.dumps([sorted(keys) for keys in removed]), encoding="utf-8")
        sync_file(partial)
        partial.replace(path)


def _removed_path(staged_path: Path) -> Path:
    return staged_path.with_name("removed.json")
