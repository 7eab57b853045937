"""The store in a file: what survives, what several processes do at once, what a dead one leaves, what does not open."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from invoker.core.store import Change, Create, Drop, Get, Hold, Look, Put, Reason, Refused
from invoker.errors import StartupError
from invoker.stores.backend import LEASE_S
from invoker.stores.shared import SharedStore
from invoker.stores.sqlite import SqliteBackend
from tests.stores.worlds import SECOND, SqliteWorld, Subscriber

PROGRAM = """
import asyncio, sys
from pathlib import Path
from invoker.core.store import *
from invoker.stores import asking
from invoker.stores.shared import SharedStore
from invoker.stores.sqlite import SqliteBackend

class Guest:
    def answered(self, key, value): self.answer.set_result(value)
    def has_news(self, news): pass
    async def ask(self, store, question):
        self.answer = asyncio.get_running_loop().create_future()
        store.ask(self, "", question)
        return await self.answer

async def main():
    asking.LEASE_S = float(sys.argv[2])
    store, guest = SharedStore(SqliteBackend(Path(sys.argv[1]))), Guest()
    store.start(asyncio.get_running_loop().call_later)
    await guest.ask(store, Create("s", 100, b""))
    for number in range(int(sys.argv[3])):
        item = await guest.ask(store, Get("s", "count"))
        while not isinstance(await guest.ask(store, Put("s", "count", b"%d" % (int(item.value) + 1 if item else 1),
                             expects=item.updated_ns if item else 0)), Item):
            item = await guest.ask(store, Get("s", "count"))
    await guest.ask(store, Hold("s"))
    print("held", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    store.close()

asyncio.run(main())
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SqliteWorld]:
    """With one space that lives for ten seconds."""
    made = SqliteWorld(tmp_path / "store.db")
    made.ask(Create("s", 10, b"about"))
    yield made
    made.close()


def started(path: Path, *, lease_s: float = 10, writes: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(path), str(lease_s), str(writes)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.communicate("")


def test_what_was_written_survives_the_process(world: SqliteWorld) -> None:
    """Spaces, items, versions, and why a space is gone; a hold does not."""
    written = world.ask(Put("s", "a", b"1"))
    world.ask(Create("short", 1))
    world.ask(Hold("s"))
    world.wait(2)
    assert world.ask(Look("short")) == Refused(Reason.EXPIRED)
    world.store.close()
    world.store = world.another()
    subscriber = world.new_subscriber()
    space = subscriber.ask(Look("s"))
    assert (space.about, space.created_ns, space.items, space.holds) == (b"about", 5 * SECOND, 1, 0)
    assert subscriber.ask(Get("s", "a")) == written
    assert subscriber.ask(Look("short")) == Refused(Reason.EXPIRED)


@pytest.mark.timeout(20)
def test_real_processes_lose_no_write_of_each_other(tmp_path: Path) -> None:
    """They start at once on a file that is not there yet, and count in turns."""
    path = tmp_path / "store.db"
    processes = [started(path, writes=50) for _ in range(4)]
    assert [said(one) for one in processes] == ["held"] * 4
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT value FROM items").fetchall() == [(b"200",)]
        assert db.execute("SELECT total(count) FROM holds").fetchone() == (4.0,)
    db.close()
    ended(*processes)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.timeout(20)
async def test_what_a_killed_process_held_lapses(tmp_path: Path) -> None:
    """Nothing has to be cleaned up after kill -9."""
    path = tmp_path / "store.db"
    process = started(path, lease_s=0.5)
    assert said(process) == "held"
    store, answers = SharedStore(SqliteBackend(path)), asyncio.Queue[Any]()

    class Asker:
        def answered(self, key: str, value: Any) -> None:
            answers.put_nowait(value)

        def has_news(self, news: Any) -> None:
            """Nothing is subscribed to."""

    store.start(asyncio.get_running_loop().call_later)
    asker = Asker()

    async def holds() -> int:
        store.ask(asker, "", Look("s"))
        return (await answers.get()).holds  # type: ignore[no-any-return]

    assert await holds() == 1
    process.kill()
    ended(process)
    killed = time.monotonic()
    while await holds():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    assert time.monotonic() - killed < 5
    store.close()


def test_who_was_away_too_long_is_told_so(world: SqliteWorld) -> None:
    """Changes that it had not read are deleted, so its subscriptions end; it may subscribe anew, and still holds."""
    away = world.another()
    subscriber = world.new_subscriber(away)
    subscriber.ask(Hold("s"))
    news = subscriber.hear()
    world.settle()
    world.now_ns += int((LEASE_S + 1) * SECOND)
    world.beat(world.store)
    world.ask(Put("s", "a", b"1"))
    world.beat(world.store)
    assert world.ask(Look("s")).holds == 0
    world.beat(away)
    assert world.taken(news) == [Refused(Reason.UNAVAILABLE)]
    assert world.ask(Look("s")).holds == 1
    again = subscriber.hear(has_initial=True)
    world.settle()
    world.ask(Put("s", "a", b"2"))
    assert [one.value for one in world.taken(again) if isinstance(one, Change)] == [b"1", b"2"]


def test_what_all_have_read_is_deleted(world: SqliteWorld) -> None:
    """So the file does not grow with each write; where nobody listens, nothing is written twice."""

    def kept() -> int:
        with sqlite3.connect(world.path) as db:
            count: int = db.execute("SELECT count(*) FROM changes").fetchone()[0]
        db.close()
        return count

    world.ask(Put("s", "a", b"0"))
    assert kept() == 0
    subscriber = world.new_subscriber(world.another())
    news = subscriber.hear()
    world.settle()
    for number in range(10):
        world.ask(Put("s", "a", b"%d" % number))
    assert len(world.taken(news)) == 10
    world.beat()
    world.beat()
    assert kept() == 0


def test_who_only_reads_needs_no_lock(world: SqliteWorld) -> None:
    """Another process may be in the midst of a long write."""
    world.ask(Put("s", "a", b"1"))
    db = sqlite3.connect(world.path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    assert world.ask(Get("s", "a")).value == b"1"
    db.execute("ROLLBACK")
    db.close()


def test_a_file_that_fails_fails_the_questions_alone(world: SqliteWorld, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once; when the file works again, the store does."""
    db = sqlite3.connect(world.path, isolation_level=None)
    db.execute("ALTER TABLE spaces RENAME TO others")
    assert [world.ask(Look("s")) for _ in range(3)] == [Refused(Reason.UNAVAILABLE)] * 3
    assert caplog.text.count(" fails: ") == 1
    db.execute("ALTER TABLE others RENAME TO spaces")
    db.close()
    assert world.ask(Look("s")).about == b"about"


async def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    """No folder, no database, or of a format that is not known; the error names the file."""
    strange, newer = tmp_path / "strange.db", tmp_path / "newer.db"
    strange.write_text("something else" * 100)
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    for path, text in ((tmp_path / "no" / "file", "No such"), (strange, "not a database"), (newer, "format 99")):
        with pytest.raises(StartupError, match=text) as caught:
            SharedStore(SqliteBackend(path)).start(asyncio.get_running_loop().call_later)
        assert str(path) in str(caught.value)


def test_a_guest_is_served_by_the_store_that_it_asks(world: SqliteWorld) -> None:
    """Two stores of one process on one file do not disturb each other."""
    other = Subscriber(world, world.another())
    assert other.ask(Put("s", "a", b"1")).name == "a"
    world.stores.pop().close()
    assert world.ask(Get("s", "a")).value == b"1"


def test_F083_what_is_to_be_durable_is_synchronised_with_the_disk(world: SqliteWorld) -> None:
    """Only its own transaction is; SQLite calls fsync at the end of one if it is written so."""
    said: list[str] = []
    (store,) = world.stores
    store._backend._db.set_trace_callback(said.append)  # type: ignore[attr-defined]  # nothing else shows it
    world.ask(Put("s", "a", b"1"))
    assert not any("synchronous" in one for one in said)
    world.ask(Put("s", "b", b"2", is_durable=True))
    seen = [one for one in said if "synchronous" in one or "INSERT INTO items" in one or one == "COMMIT"]
    start = seen.index("PRAGMA synchronous=FULL")
    assert [one.split(" ")[0] for one in seen[start:]][:4] == ["PRAGMA", "INSERT", "COMMIT", "PRAGMA"]
    assert seen[start + 3] == "PRAGMA synchronous=NORMAL"


def test_a_space_that_is_gone_leaves_no_items(world: SqliteWorld, tmp_path: Path) -> None:
    """Nobody could read or delete them any more."""
    for end in (lambda: world.ask(Drop("s")), lambda: world.wait(100)):
        world.ask(Create("s", 10))
        world.ask(Put("s", "a", b"1"))
        end()
        assert isinstance(world.ask(Look("s")), Refused)
    with closing(sqlite3.connect(tmp_path / "store.db")) as file:
        assert file.execute("SELECT count(*) FROM items").fetchone() == (0,)
