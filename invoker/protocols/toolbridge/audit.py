"""Makes the line of the audit log for a tool call (T-167).

The line names the caller, the tool and the outcome. It has a hash of the arguments; their values are logged only if the
operator asks for them. Even then each value whose name matches a pattern is replaced, at any depth, and so are the
positional arguments of a call that was refused before their names were known. Results are never logged.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import translate
from math import isfinite
from typing import Any, Final, NamedTuple

from invoker.codecs.anyvalue import BadAny, unpack
from invoker.core.peers import IDENTITY, PEER
from invoker.protocols.toolbridge.tally import outcome_of

ALWAYS: Final = (
    *("*password*", "*passwd*", "*passphrase*", "*passcode*", "*passwort*", "*kennwort*", "*pass", "*pwd*"),
    *("*secret*", "*token*", "*key*", "*credential*", "*authorization*", "*cookie*", "*jwt*", "*otp", "*dsn"),
)
"""Values are never shown if their name contains one of these."""

_WORDS: Final = frozenset(
    {
        *("pass", "pw", "pin", "puk", "tan", "otp", "totp", "mfa", "cred", "creds", "auth", "bearer", "jwt", "sid"),
        *("cvv", "cvc", "ssn", "iban", "sig", "signature", "salt", "nonce", "private", "seed", "mnemonic", "dsn"),
    }
)
"""Values are also not shown if their name has one of these as a word: ``db_pass``, ``userPin2``, ``X-Auth``, but not
``author``."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+").findall

_REDACTED: Final = "[redacted]"
_MOST_CHARS: Final = 1000


class Entry(NamedTuple):
    """The data for the line of a call. The line is computed later, since an entry is made for each call."""

    ended_s: float
    asked: Any
    tool: Any
    via: str
    outcome: str
    took_s: float
    correlation_id: str
    is_repeat: bool


class Redaction:
    """Decides which arguments are shown.

    Args:
        patterns: Shell patterns of the names whose values are hidden, in addition to the built-in ones; case is
            ignored.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._is_hidden = re.compile("|".join(translate(one.lower()) for one in (*ALWAYS, *patterns))).match

    def shown(self, name: str, value: Any) -> Any:
        """A value with its hidden parts replaced."""
        if self._is_hidden(name.lower()) or any(word.lower() in _WORDS for word in _WORD(name)):
            return _REDACTED
        if isinstance(value, Mapping):
            return {str(key): self.shown(str(key), one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.shown("", one) for one in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"{len(value)} bytes"
        if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value)):
            return value
        return str(value)[:_MOST_CHARS]


def entry_of(call: Any, *, is_repeat: bool = False) -> Entry:
    """The entry for the line of a call that has ended.

    Args:
        call: The call.
        is_repeat: Whether the call did not run, but got the answer of another call.
    """
    outcome, took_s = outcome_of(call), call.took_s
    return Entry(time.time(), call.asked, call.tool, call.via, outcome, took_s, call.correlation_id, is_repeat)


def line_of(entry: Entry, redaction: Redaction | None = None) -> bytes:
    """Format an entry as a line of JSON, with a newline."""
    asked, tool = entry.asked, entry.tool
    is_ok = entry.outcome == "ok"
    told: dict[str, Any] = {
        "time": datetime.fromtimestamp(entry.ended_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "session_id": asked.session_id,
        "tool_id": tool.id if tool is not None else asked.tool_id,
        "request_id": asked.request_id,
        "correlation_id": entry.correlation_id,
        "peer": asked.metadata.get(PEER, ""),
        "identity": asked.metadata.get(IDENTITY, ""),
        "via": entry.via,
        "outcome": _outcome(entry),
        "error_type": "" if is_ok else entry.outcome,
        "duration_ms": round(entry.took_s * 1000, 3),
        "args_sha256": args_sha256(asked.args, asked.kwargs),
    }
    if redaction is not None:
        told["args"] = _arguments(entry, redaction)
    return json.dumps(told, default=str).encode() + b"\n"


def _outcome(entry: Entry) -> str:
    if entry.outcome == "ok":
        return "cached" if entry.is_repeat else "ok"
    return "cancelled" if entry.outcome == "Cancelled" else "error"


def args_sha256(args: Sequence[bytes], kwargs: Mapping[str, bytes]) -> str:
    """A hash of all arguments, over the name or position, the size and the bytes of each."""
    made = hashlib.sha256()
    named = [(str(index), one) for index, one in enumerate(args)] + [
        (f"={name}", kwargs[name]) for name in sorted(kwargs)
    ]
    for name, payload in named:
        made.update(b"%d:%d:" % (len(name.encode("utf-8", "surrogatepass")), len(payload)))
        made.update(name.encode("utf-8", "surrogatepass"))
        made.update(payload)
    return made.hexdigest()


def _arguments(entry: Entry, redaction: Redaction) -> dict[str, Any]:
    asked, tool = entry.asked, entry.tool
    names = [one.name for one in tool.spec().arguments] if tool is not None else []
    told: dict[str, Any] = {}
    for index, payload in enumerate(asked.args):
        if index < len(names):
            told[names[index]] = _shown(redaction, names[index], payload)
        else:  # the argument's name is unknown, so it may be a secret
            told[str(index)] = _REDACTED
    for name, payload in asked.kwargs.items():
        told[name] = _shown(redaction, name, payload)
    return told


def _shown(redaction: Redaction, name: str, payload: bytes) -> Any:
    try:
        return redaction.shown(name, unpack(payload))
    except BadAny as error:
        return f"[{error.reason}]"
