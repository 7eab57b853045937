"""Sessions that the tree before the third drawing has written are read: by SQLite, and by Redis.

`tests/data/stores` holds what one server of the commit `before-third-drawing` left of one session of the tool bridge:
its file, and the values of its keys. ``python -m tools rolling before-third-drawing`` does it with servers at work.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import unpack
from invoker.core.store import Look, Scan, Space
from invoker.core.variables import PREFIX, read, write
from tests.stores.worlds import RedisWorld, SqliteWorld, World

DATA = Path(__file__).parent.parent / "data" / "stores"
SAVED = json.loads((DATA / "redis.json").read_text(encoding="utf-8"))
SPACE = "toolbridge/kept"
VALUES = {
    "text": "wörter",
    "number": 2**53 + 1,
    "fraction": 0.1,
    "truth": True,
    "nothing": None,
    "bytes": b"\x00\xff",
    "list": [1, "two", [3.5, None]],
    "mapping": {"a": {"b": [1]}},
    "tagged": "x",
    "words": ["one", "two"],
}


@pytest.fixture(params=["sqlite", "redis"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store over what was written, at the time at which it was."""
    if request.param == "sqlite":
        shutil.copy(DATA / "before.db", tmp_path / "store.db")
        made: World = SqliteWorld(tmp_path / "store.db")
    else:
        url = request.getfixturevalue("redis_url")
        _restore(url)
        made = RedisWorld(url)
    made.now_ns = SAVED["now_ns"]
    yield made
    made.close()


def test_a_session_from_before_has_its_variables(world: World) -> None:
    """Of each kind, with its tags; and the space knows what the session was made with."""
    space = world.ask(Look(SPACE))
    assert isinstance(space, Space)
    assert dict(pb.InitializeSessionRequest.FromString(space.about).metadata) == {"who": "before"}
    found = {one.name.removeprefix(PREFIX) for one in world.ask(Scan(SPACE, PREFIX, most=100))}
    assert found == VALUES.keys()
    for name, value in VALUES.items():
        variable = talked(world, read(SPACE, name))
        assert unpack(variable.value) == value
        assert variable.about.tags == ({"a": "1"} if name == "tagged" else {})


def test_a_variable_from_before_is_written_again(world: World) -> None:
    """It keeps when it was made, and its new value is read."""
    before = talked(world, read(SPACE, "text"))
    world.wait(1)
    talked(world, write(SPACE, "text", talked(world, read(SPACE, "number")).value, by="python"))
    after = talked(world, read(SPACE, "text"))
    assert unpack(after.value) == VALUES["number"]
    assert (after.created_ns, after.updated_ns > before.updated_ns) == (before.created_ns, True)


def talked(world: World, talk: Any) -> Any:
    """What a talk with the store comes to."""
    answer = None
    while True:
        try:
            answer = world.ask(talk.send(answer))
        except StopIteration as done:
            return done.value


def _restore(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client:
        for one in SAVED["keys"]:
            key, value = base64.b64decode(one["key"]), one["value"]
            if one["type"] == "string":
                client.set(key, base64.b64decode(value))
            elif one["type"] == "hash":
                client.hset(key, mapping={base64.b64decode(k): base64.b64decode(v) for k, v in value.items()})
            else:
                client.zadd(key, {base64.b64decode(member): score for member, score in value})
