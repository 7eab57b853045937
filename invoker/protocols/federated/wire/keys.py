"""Key pairs on P-256, key agreement between two of them, and sealed messages (F-096, F-097).

A public key is a compressed point of 33 bytes (X9.62); a secret key is a number of 32 bytes, big-endian. Two pairs
agree on the x-coordinate of their common point, 32 bytes, without a key derivation.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

KEY_BYTES: Final = 32
POINT_BYTES: Final = 33
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


class KeyPair:
    """A secret key and its public one.

    Args:
        secret: The secret key, 32 bytes, big-endian; None: a new one is made.

    Raises:
        ValueError: The secret is not a number from 1 to the order of the curve less one.
    """

    __slots__ = ("_private", "public", "secret")

    def __init__(self, secret: bytes | None = None) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        curve = ec.SECP256R1()
        self._private = (
            ec.generate_private_key(curve)
            if secret is None
            else ec.derive_private_key(int.from_bytes(secret, "big"), curve)
        )
        self.secret = self._private.private_numbers().private_value.to_bytes(KEY_BYTES, "big")
        form = serialization.PublicFormat.CompressedPoint
        self.public = self._private.public_key().public_bytes(serialization.Encoding.X962, form)

    def agree(self, public: bytes) -> bytes:
        """The 32 bytes that only the owners of this pair and of ``public`` can compute.

        Raises:
            ValueError: ``public`` is not a compressed point of the curve.
        """
        from cryptography.hazmat.primitives.asymmetric import ec

        return self._private.exchange(ec.ECDH(), _point(public))

    def __repr__(self) -> str:
        # keeps secrets out of logs and tracebacks
        return f"<KeyPair {self.public.hex()}>"


def new_key() -> bytes:
    """Make a random key of 32 bytes, from the operating system."""
    return os.urandom(KEY_BYTES)


def is_point(public: bytes) -> bool:
    """Whether the bytes are a compressed point of the curve, 33 bytes (F-113, F-114)."""
    try:
        _point(public)
    except ValueError:
        return False
    return True


def public_of(secret: bytes) -> bytes | None:
    """The public key of a secret key; None: the secret key is not valid (F-127)."""
    try:
        return KeyPair(secret).public
    except ValueError:
        return None


def seal(key: bytes, plain: bytes) -> bytes:
    """Encrypt by AES-256-GCM; returns a random nonce of 12 bytes, the ciphertext, and a tag of 16 bytes."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


def open_sealed(key: bytes, sealed: bytes) -> bytes | None:
    """Decrypt a sealed message; None: it was sealed with another key, or changed (F-105)."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
        return None
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
    except InvalidTag:
        return None


@functools.lru_cache(maxsize=4096)
def _point(public: bytes) -> ec.EllipticCurvePublicKey:
    # cached: a server checks each key of a round, and uses it again for each dead device
    from cryptography.hazmat.primitives.asymmetric import ec

    if len(public) != POINT_BYTES:
        raise ValueError(f"a public key is a compressed point of {POINT_BYTES} bytes, not {len(public)} bytes")
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
