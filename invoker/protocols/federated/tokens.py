"""`RetryTokens`: signed tokens; a client that returns with one within its window is preferred.

A token is the base64 (for URLs, without padding) of::

    version    1 byte, 1
    begins     8 bytes, big-endian: when the window begins, in milliseconds of Unix time
    ends       8 bytes: when the window ends, likewise
    signature  16 bytes: the first bytes of HMAC-SHA256 over the three fields and the population's name in UTF-8

So a token has 44 characters. It reveals nothing about the client: all clients with the same window get the same token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Callable
from typing import Final

from invoker.protocols.federated.messages import Verdict

_VERSION: Final = 1
_BODY: Final = struct.Struct(">BQQ")
_SIGNATURE_BYTES: Final = 16
_LENGTH: Final = 4 * (_BODY.size + _SIGNATURE_BYTES) // 3
_LATEST_S: Final = 2.0**53
_LEAST_KEY_BYTES: Final = 16


class RetryTokens:
    """Makes and verifies tokens (F-054, F-055); implements `messages.Tokens`.

    Args:
        key: The key for signatures. All processes that serve a population need the same key, even after a restart;
            otherwise older tokens count as absent.
        now: Returns Unix time, in seconds.
        grace_s: For how many seconds after its window a token is still valid, for clients with slow connections.

    Raises:
        ValueError: The key is shorter than 16 bytes.
    """

    def __init__(self, key: bytes, now: Callable[[], float], *, grace_s: float = 30.0) -> None:
        if len(key) < _LEAST_KEY_BYTES:
            raise ValueError(f"the key of retry tokens has {len(key)} bytes; at least {_LEAST_KEY_BYTES} are needed")
        self._key, self._now, self._grace_s = key, now, grace_s

    def make(self, population: str, delay_min_s: float, delay_max_s: float) -> str:
        """Make a signed token for a window, whose begin and end are in seconds from now."""
        now = self._now()
        begins, ends = (_milliseconds(now + delay_s) for delay_s in (delay_min_s, max(delay_min_s, delay_max_s)))
        body = _BODY.pack(_VERSION, begins, ends)
        return base64.urlsafe_b64encode(body + self._signature(population, body)).decode()

    def judge(self, population: str, token: str) -> Verdict:
        """Verify a client's token; never raises."""
        if len(token) != _LENGTH or not token.isascii():
            return Verdict.ABSENT
        try:
            data = base64.b64decode(token, altchars=b"-_", validate=True)
        except binascii.Error:
            return Verdict.ABSENT
        body, signature = data[: _BODY.size], data[_BODY.size :]
        if not hmac.compare_digest(signature, self._signature(population, body)):
            return Verdict.ABSENT
        version, begins, ends = _BODY.unpack(body)
        now = _milliseconds(self._now())
        if version != _VERSION or now > ends + _milliseconds(self._grace_s):
            return Verdict.ABSENT
        return Verdict.EARLY if now < begins else Verdict.IN_WINDOW

    def _signature(self, population: str, body: bytes) -> bytes:
        signed = body + population.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, signed, hashlib.sha256).digest()[:_SIGNATURE_BYTES]


def _milliseconds(seconds: float) -> int:
    return round(min(max(0.0, seconds), _LATEST_S) * 1000)
