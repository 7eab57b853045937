"""`RedisBackend`: spaces in a Redis server, for replicas on several machines.

Each question is one run of a script (`redis.lua`), and therefore atomic; questions that are sent together share a round
trip. The clock is that of the server, so the clocks of the replicas need not agree. Each process subscribes to one
channel of its own before anything else. The script that answers `Listen` records the process and returns the existing
items; every later change is published to the channels of the recorded processes, so no change is missed in between. If
that connection breaks, changes may have been missed: all subscriptions end, and the process subscribes again.

Redis clusters, and servers that evict keys, are not supported.
"""

from __future__ import annotations

import logging
import math
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from invoker.core.spaces import OVERHEAD, StoreLimits, weight
from invoker.core.store import PRESENT, Change, Create, Hold, Item, Put, Reason, Refused, Scan, Space
from invoker.errors import StartupError
from invoker.stores.backend import (
    UNAVAILABLE,
    Asked,
    Beat,
    Dropped,
    Event,
    Held,
    IsHeld,
    Listen,
    Listening,
    Lose,
    Sweep,
    Tell,
)

log = logging.getLogger(__name__)

_CONNECT_S: Final = 2.0
_REPLY_S: Final = 5.0
_RETRY_S: Final = 0.25
"""Seconds between two tries to subscribe anew."""

_LOOK_S: Final = 1.0
"""Seconds between two checks of the receiving thread whether the process ends."""

_MOST_EVENTS: Final = 256
_PREFIX: Final = "invoker:"
_SCRIPT: Final = Path(__file__).with_name("redis.lua")


class RedisBackend:
    """Keeps spaces in a Redis server.

    Args:
        url: The URL for redis-py: ``redis://``, ``rediss://`` or ``unix://``.
        limits: The limits of the store.
        clock: Returns nanoseconds since the epoch; None: the server's clock is used.
    """

    def __init__(self, url: str, limits: StoreLimits | None = None, clock: Callable[[], int] | None = None) -> None:
        self.epoch = 0
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._owner = uuid.uuid4().hex
        tcp = {} if url.startswith("unix:") else {"socket_connect_timeout": _CONNECT_S, "socket_keepalive": True}
        self._client = redis.Redis.from_url(
            url, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=_REPLY_S, **tcp
        )
        self._place = _place(self._client)
        self._sha = ""
        self._is_failing = False
        self._is_up = threading.Event()  # whether this process is subscribed to its channel
        self._is_over = threading.Event()
        self._news = threading.Thread(target=self._hear, name="invoker-store-news", daemon=True)

    def open(self, tell: Tell, lose: Lose) -> None:
        """Connect, and subscribe to the channel of this process."""
        self._tell, self._lose = tell, lose
        try:
            self._sha = self._client.script_load(_SCRIPT.read_text(encoding="utf-8"))
        except (RedisError, OSError) as error:
            raise StartupError(f"the store at {self._place} cannot be reached: {error}") from error
        self._news.start()
        if not self._is_up.wait(_REPLY_S):
            self._is_over.set()
            raise StartupError(f"the store at {self._place} does not let this process subscribe")

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        """Answer all questions in one round trip."""
        epoch = self.epoch if self._is_up.is_set() else -1
        try:
            said = self._run([self._spelled(one) for one in asked])
        except (RedisError, OSError) as error:
            self._failed(error)
            return [UNAVAILABLE] * len(asked)
        self._is_failing = any(isinstance(one, RedisError) for one in said)
        return [self._understood(one, answer, epoch) for one, answer in zip(asked, said, strict=True)]

    def look(self) -> float:
        """Do nothing, since the server sends changes by itself."""
        return math.inf

    def close(self) -> None:
        """Release the holds of this process, and disconnect."""
        self._is_over.set()
        try:
            self._run([["bye"]])
            self._client.publish(self._channel, b"")  # wakes the thread that receives changes
        except (RedisError, OSError) as error:
            self._failed(error)
        self._news.join(_LOOK_S + _CONNECT_S)
        self._client.close()

    # Questions and answers.

    def _run(self, questions: list[list[Any]]) -> list[Any]:
        """Run the script for each question, and return the answers; one may be a RedisError."""
        now = "" if self._clock is None else self._clock() // 1000
        pipeline = self._client.pipeline(transaction=False)
        for op, *arguments in questions:
            pipeline.evalsha(self._sha, 0, _PREFIX, op, now, self._owner, *arguments)
        said: list[Any] = pipeline.execute(raise_on_error=False)
        lacking = [index for index, one in enumerate(said) if isinstance(one, NoScriptError)]
        if lacking:  # the server was restarted
            self._sha = self._client.script_load(_SCRIPT.read_text(encoding="utf-8"))
            for index, answer in zip(lacking, self._run([questions[index] for index in lacking]), strict=True):
                said[index] = answer
        return said

    def _spelled(self, asked: Asked) -> list[Any]:
        limits = self._limits
        if isinstance(asked, Create):
            size = OVERHEAD + len(asked.space) + len(asked.about)
            bounds = (limits.spaces, limits.total_bytes)
            return ["create", asked.space, asked.about, int(asked.ttl_s * 1e6), size, *bounds]
        if isinstance(asked, Put):
            own, is_there = weight(asked.name, b"", b""), int(asked.value is not None)
            expects = "" if asked.expects is None else _micros(asked.expects)
            bounds3 = (limits.items, limits.space_bytes, limits.total_bytes)
            about = (asked.about, int(asked.keeps_about))
            return ["put", asked.space, asked.name, is_there, asked.value or b"", expects, *about, own, *bounds3]
        if isinstance(asked, Scan):
            prefix, after = asked.prefix, asked.after
            least = f"({after}" if after >= prefix and after else f"[{prefix}"
            return ["scan", asked.space, least, prefix, max(0, asked.most)]
        if isinstance(asked, Listen):
            wants = int(asked.names is None or bool(asked.names))
            initial = "none" if not asked.has_initial else "all" if asked.names is None else "named"
            return ["listen", asked.space, wants, initial, *sorted(asked.names or ())]
        if isinstance(asked, Beat):
            return ["beat", int(asked.lease_s * 1e6)]
        fields = msgspec.structs.astuple(asked)
        return [type(asked).__name__.lower(), *(int(one) if isinstance(one, bool) else one for one in fields)]

    def _understood(self, asked: Asked, said: Any, epoch: int) -> Any:
        if isinstance(said, RedisError):
            self._failed(said)
            return UNAVAILABLE
        if isinstance(asked, (IsHeld, Sweep)):
            return bool(said)
        if said is None or isinstance(said, int):
            return None
        kind, *rest = said
        if kind == b"refused":
            return Refused(Reason[rest[0].decode()], rest[1])
        if kind == b"space":
            return _space(rest) if not isinstance(asked, Hold) else Held(_space(rest), int(rest[0]))
        if kind == b"items":
            items = _items(rest)
            return items if isinstance(asked, Scan) else items[0]
        if kind == b"written":
            assert isinstance(asked, Put)
            assert asked.value is not None
            return Item(asked.name, asked.value, int(rest[0]) * 1000, int(rest[1]) * 1000, rest[2])
        if kind == b"dropped":
            return Dropped(int(rest[0]))
        return Listening(int(rest[0]), int(rest[1]), _items(rest[2:]), epoch)

    def _failed(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            log.error("the store at %s fails: %s", self._place, error)

    # Changes, which are received in a thread of their own.

    @property
    def _channel(self) -> str:
        return f"{_PREFIX}news:{self._owner}"

    def _hear(self) -> None:
        while not self._is_over.is_set():
            try:
                with self._client.pubsub() as channel:  # type: ignore[no-untyped-call]  # redis-py has no types there
                    channel.subscribe(self._channel)
                    self._hear_all(channel)
            except (RedisError, OSError) as error:
                if self._is_up.is_set():
                    log.warning("the subscription to the store at %s was lost: %s", self._place, error)
            self._missed()
            self._is_over.wait(_RETRY_S)

    def _hear_all(self, channel: Any) -> None:
        """Pass on the messages that come, until the connection breaks or the process ends."""
        while not self._is_over.is_set():
            events: list[Event] = []
            message = channel.get_message(timeout=_LOOK_S)
            while message is not None:
                if message["type"] == "message" and message["data"]:
                    events.append(_event(message["data"]))
                elif message["type"] == "subscribe":
                    self._missed()  # a second subscription means that redis-py has reconnected by itself
                    self._is_up.set()
                message = channel.get_message(timeout=0) if len(events) < _MOST_EVENTS else None
            if events:
                self._tell(events)

    def _missed(self) -> None:
        if self._is_up.is_set():
            self._is_up.clear()
            self.epoch += 1
            self._lose()


def _place(client: redis.Redis) -> str:
    """The address of the server, without the password."""
    known = client.connection_pool.connection_kwargs
    return str(known["path"]) if "path" in known else f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"


def _micros(version_ns: int) -> int:
    """Convert a version to the server's form; -2 for a version that the server has never returned."""
    if version_ns == PRESENT:
        return PRESENT
    whole, rest = divmod(version_ns, 1000)
    return -2 if rest else whole


def _space(said: list[Any]) -> Space:
    _, name, about, ttl, created, used, items, size, holds, is_new = said
    return Space(
        name.decode(), about, int(ttl) / 1e6, int(created) * 1000, int(used) * 1000, int(items), int(size), holds,
        bool(is_new),
    )  # fmt: skip


def _items(said: list[bytes]) -> tuple[Item, ...]:
    """Read alternating names and contents of items."""
    found = []
    for name, kept in zip(said[::2], said[1::2], strict=True):
        created, updated, length, rest = kept.split(b" ", 3)
        at = int(length)
        found.append(Item(name.decode(), rest[at:], int(created) * 1000, int(updated) * 1000, rest[:at]))
    return tuple(found)


def _event(data: bytes) -> Event:
    """Parse a change that the script has published."""
    key, seq, updated, is_new, is_there, length, rest = data.split(b" ", 6)
    if updated == b"-1":
        return Event(int(key), int(seq), Refused(Reason[rest.decode()]))
    name, value = rest[: int(length)].decode(), rest[int(length) :]
    change = Change(name, value if is_there == b"1" else None, int(updated) * 1000, is_new=is_new == b"1")
    return Event(int(key), int(seq), change)
