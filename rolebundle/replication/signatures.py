"""Keys and signatures of manifests: Ed25519 (RFC 8032)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from rolebundle import system
from rolebundle.contracts.upkeep import ReplicaManifest, SignedManifest
from rolebundle.errors import ConfigurationError
from rolebundle.storage.audit import canonical
from rolebundle.storage.file import OWNER_ONLY, write_new

PrivateKey = ed25519.Ed25519PrivateKey
PublicKey = ed25519.Ed25519PublicKey
PUBLIC_SUFFIX = ".pub"
_MAX_KEY_BYTES = 10_000


def create_key(path: Path) -> Path:
    """Create a private key, and its public key beside it. Return the path of the public key.

    Both are PEM files, which other tools read, too.

    Raises:
        ConfigurationError: ``file_exists``: one of the files exists. Nothing was changed.
        OSError: they cannot be written.
    """
    public_path = path.with_name(f"{path.name.removesuffix('.key')}{PUBLIC_SUFFIX}")
    key = PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_new({path: private, public_path: public}, OWNER_ONLY)
    public_path.chmod(0o644)
    return public_path


def load_private_key(path: Path) -> PrivateKey:
    """Read the key of a publisher.

    Raises:
        ConfigurationError: it cannot be read, others can read it, or it is no Ed25519 key.
    """
    key: PrivateKey = _load(
        path, PrivateKey, lambda data: serialization.load_pem_private_key(data, None)
    )
    if system.is_open_to_others(path.stat()):
        raise ConfigurationError(
            "key_readable_by_others",
            f"{path}: other users of this machine can read this private key",
            "let only its owner read it (chmod 600), or create a new key with "
            "`rolebundle replica keygen FILE`",
        )
    return key


def load_public_key(path: Path) -> PublicKey:
    """Read the key that verifies the manifests of a publisher.

    Raises:
        ConfigurationError: it cannot be read, or it is no public Ed25519 key.
    """
    key: PublicKey = _load(path, PublicKey, serialization.load_pem_public_key)
    return key


def _load(path: Path, kind: Any, parse: Callable[[bytes], object]) -> Any:
    """The key in a file, which must be of this class."""
    try:
        with path.open("rb") as stream:
            key = parse(stream.read(_MAX_KEY_BYTES))
    except OSError as error:
        problem = f"{path}: the key cannot be read ({error.strerror})"
        step = "check the name, or create a key with `rolebundle replica keygen FILE`"
        raise ConfigurationError("key_missing", problem, step) from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        name = "a private" if kind is PrivateKey else "a public"
        raise ConfigurationError(
            "bad_key",
            f"{path}: is not {name} Ed25519 key without a password, in PEM form",
            "`replica publish --key` takes FILE.key and `replica pull --key` takes FILE.pub, "
            "as `rolebundle replica keygen FILE.key` writes them",
        )
    return key


def key_id(key: PublicKey) -> str:
    """The name of a public key: see :class:`SignedManifest`."""
    return sha256(key.public_bytes_raw()).hexdigest()[:16]


def sign(manifest: ReplicaManifest, key: PrivateKey) -> SignedManifest:
    """Sign a manifest."""
    return SignedManifest(
        manifest=manifest,
        key_id=key_id(key.public_key()),
        signature=b64encode(key.sign(_signed_bytes(manifest))).decode(),
    )


def is_signed_by(signed: SignedManifest, key: PublicKey) -> bool:
    """Whether a manifest has a valid signature of this key."""
    if signed.key_id != key_id(key):
        return False
    try:
        key.verify(b64decode(signed.signature, validate=True), _signed_bytes(signed.manifest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed_bytes(manifest: ReplicaManifest) -> bytes:
    return canonical(manifest.model_dump()).encode()
