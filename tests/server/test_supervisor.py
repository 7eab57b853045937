"""The supervisor's decisions; what its processes do is tested in tests/e2e/test_workers.py."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from invoker.errors import ConfigError, StartupError
from invoker.server import supervisor as module
from invoker.server.supervisor import Backoff, Supervisor
from invoker.server.table import TABLE
from invoker.settings import Config
from invoker.telemetry.board import Board, Numbers, Row
from invoker.telemetry.metrics import RELOADS, RESTARTS, WANTED, WORKERS


def test_the_pause_doubles_up_to_its_limit():
    """A worker that dies again and again is started ever more seldom, but for ever."""
    backoff = Backoff(first_s=0.1, most_s=1.0)
    assert [backoff.after(0.0) for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    for _ in range(2000):
        assert backoff.after(0.0) == 1.0


def test_who_has_lived_long_enough_starts_the_count_anew():
    """A crash a day is no crash loop."""
    backoff = Backoff(first_s=0.1, most_s=1.0, calm_s=10.0)
    assert [backoff.after(lived) for lived in (9.9, 9.9, 10.0, 0.0)] == pytest.approx([0.1, 0.2, 0.1, 0.2])


class FakeChild:
    """A worker whose life the test decides."""

    made: list[FakeChild]
    boards: Board

    def __init__(self, place):
        self.place = place
        self.is_ready = self.is_over = False
        self.lived_s = self.end_limit_s = 0.0
        self.line = "ready: here"
        self.failure = ("", 1)
        self.settled = asyncio.Event()
        self.end = "exit code 3"
        self.pid = 4711
        self.orders: list[str] = []
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        FakeChild.made.append(self)

    async def start(self, argv):
        assert argv == ["a:b"]

    async def live(self):
        code = await self._code
        self.is_ready, self.is_over = False, True
        self.settled.set()
        return code

    def become_ready(self):
        self.is_ready, self.lived_s = True, 0.1
        self.settled.set()

    def die(self, code=3):
        if not self._code.done():
            self._code.set_result(code)

    def order(self, what):
        self.orders.append(what)
        self.die(0)

    def look(self, row, silent_s):
        pass

    def kill(self):
        self.die(-9)


@pytest.fixture
def made(monkeypatch):
    """The workers that were started, in order."""
    FakeChild.made = []
    monkeypatch.setattr(module, "Child", FakeChild)
    monkeypatch.setattr(module.Backoff, "after", lambda self, lived_s: 0.0)
    return FakeChild.made


@pytest.fixture
def said(monkeypatch):
    """The ready lines."""
    lines: list[str] = []
    monkeypatch.setattr(module, "announce", lines.append)
    return lines


async def until(condition):
    """Let the supervisor's tasks run until something is so."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it never became so")


def supervising(workers=2):
    config = Config(host="127.0.0.1", grpc_port=0, port=0, workers=workers)
    one = Supervisor(config, ["a:b"])
    return one, asyncio.create_task(one.run())


def numbers(one):
    total = one._board.total()
    return [total.counters[RESTARTS], total.counters[RELOADS], total.gauges[WORKERS], total.gauges[WANTED]]


async def test_it_is_ready_when_every_worker_is(made, said):
    """One line, and a drain that all leave in peace is exit code 0."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    made[1].become_ready()
    await until(lambda: numbers(one) == [0, 0, 1, 2])
    assert said == []
    made[0].become_ready()
    await until(lambda: said == ["ready: here"])
    one._signals.begin(drain=True)
    assert await running == 0
    assert [child.orders for child in made] == [["drain"], ["drain"]]


@pytest.mark.parametrize(
    ("protocols", "store", "shares"),
    [("toolbridge", "auto", True), ("toolbridge", "memory", False), ("riff", "auto", False)],
)
async def test_workers_that_share_state_get_a_file_for_it(made, said, protocols, store, shares):
    """It is theirs alone, the same for each, and gone after the last; nobody else gets one."""
    env = {"INVOKER_PROTOCOLS": protocols, "INVOKER_STORE": store, "GRPC_PORT": "0", "PORT": "0"}
    given = TABLE.read({**env, "INVOKER_HOST": "127.0.0.1", "INVOKER_WORKERS": "2"})
    one = Supervisor(given, ["a:b"])
    running = asyncio.create_task(one.run())
    await until(lambda: len(made) == 2)
    stores = {child.place.store for child in made}
    assert len(stores) == 1
    kind, _, path = stores.pop().partition(":")
    assert (kind == "sqlite") is shares
    folder = Path(path).parent
    if shares:
        assert folder.stat().st_mode & 0o777 == 0o700
    for child in made:
        child.become_ready()
    one._signals.begin(drain=True)
    assert await running == 0
    assert not (shares and folder.exists())


async def test_workers_go_without_a_file_where_nothing_is_writable(made, said, monkeypatch, caplog):
    """As in a container whose file system is read-only: each worker keeps its own sessions, and the log says so."""

    def refuse(**_):
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    env = {"INVOKER_PROTOCOLS": "toolbridge", "GRPC_PORT": "0", "PORT": "0", "INVOKER_HOST": "127.0.0.1"}
    one = Supervisor(TABLE.read({**env, "INVOKER_WORKERS": "2"}), ["a:b"])
    running = asyncio.create_task(one.run())
    await until(lambda: len(made) == 2)
    assert {child.place.store for child in made} == {""}
    assert "INVOKER_STORE" in caplog.text
    for child in made:
        child.become_ready()
    one._signals.begin(drain=True)
    assert await running == 0


async def test_a_dead_worker_is_replaced_and_its_counters_are_kept(made, said):
    """Counters never go backwards, its gauges are gone, and its row is free again."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    dead = made[0]
    one._board.write(dead.place.row, Row(dead.place.number, numbers=Numbers({"calls": 5}, {"running": 1})))
    assert one._board.total().gauges["running"] == 1
    dead.die(-9)
    await until(lambda: len(made) == 3)
    assert one._board.total().counters["calls"] == 5
    assert "running" not in one._board.total().gauges
    assert (made[2].place.row, made[2].place.number) == (dead.place.row, 3)
    one._board.write(made[2].place.row, Row(3, numbers=Numbers({"calls": 2}, {})))
    made[2].become_ready()
    await until(lambda: numbers(one) == [1, 0, 2, 2])
    assert one._board.total().counters["calls"] == 7
    assert len(said) == 1
    one._signals.begin(drain=True)
    assert await running == 0


async def test_it_gives_up_when_no_worker_is_ever_ready(made, said):
    """After five deaths, with what the last one died of."""
    _, running = supervising()
    for count in itertools.count(1):
        await until(lambda: len(made) > count or running.done())  # noqa: B023
        if running.done():
            break
        made[count - 1].die()
    with pytest.raises(StartupError, match="no worker became ready; 5 have ended, the last one with: exit code 3"):
        await running
    assert all(child.is_over for child in made)


@pytest.mark.parametrize(("code", "kind"), [(1, StartupError), (2, ConfigError)])
async def test_a_reason_ends_the_start_at_once(made, said, code, kind):
    """The worker's own sentence and exit code; the others are ended."""
    _, running = supervising()
    await until(lambda: len(made) == 2)
    made[1].failure = ("a has no b", code)
    made[1].die(code)
    with pytest.raises(kind, match="a has no b") as caught:
        await running
    assert caught.value.exit_code == code
    assert made[0].orders == ["drain"]


async def test_once_one_was_ready_a_reason_ends_nothing(made, said):
    """A worker that cannot start later is tried again; the others serve meanwhile."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    made[0].become_ready()
    await until(lambda: numbers(one)[2] == 1)
    for index in range(1, 10):
        made[index].failure = ("no database", 1)
        made[index].die(1)
        await until(lambda: len(made) == index + 2)  # noqa: B023
    assert not running.done()
    one._signals.begin(drain=True)
    assert await running == 0


async def test_a_reload_replaces_one_after_the_other(made, said):
    """The old one retires when the new one is ready, and not before."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    one._reload.set()
    for index in (0, 1):
        await until(lambda: len(made) == 3 + index)  # noqa: B023
        assert made[index].orders == []
        made[2 + index].become_ready()
        await until(lambda: made[index].orders == ["retire"])  # noqa: B023
    await until(lambda: numbers(one) == [0, 2, 2, 2])
    assert len(made) == 4
    one._signals.begin(drain=True)
    assert await running == 0
    assert len(said) == 1


async def test_a_reload_to_code_that_does_not_start_changes_nothing(made, said):
    """The first new worker that fails ends the reload; the next one may succeed."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    one._reload.set()
    await until(lambda: len(made) == 3)
    made[2].die(1)
    await until(lambda: made[2].is_over)
    assert [child.orders for child in made[:2]] == [[], []]
    one._reload.set()
    await until(lambda: len(made) == 4)
    made[3].become_ready()
    await until(lambda: made[0].orders == ["retire"])
    one._signals.begin(drain=True)
    assert await running == 0


async def test_a_worker_that_was_cut_makes_the_exit_code_1(made, said):
    """As one process does whose drain was not clean (R-027)."""
    one, running = supervising(3)
    await until(lambda: len(made) == 3)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    made[1].order = lambda what: made[1].die(1)
    one._signals.begin(drain=True)
    assert await running == 1


async def test_a_worker_that_never_ends_is_killed(made, said, monkeypatch):
    """When every limit of a stop has passed."""
    monkeypatch.setattr(module, "end_limit_s", lambda config: 0.01)
    one, running = supervising()
    await until(lambda: len(made) == 2)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    made[0].order = lambda what: None
    one._signals.begin(drain=True)
    assert await running == 1


async def test_a_system_that_is_full_is_tried_again(made, said, monkeypatch):
    """No room for a process: the slot stays empty until there is."""
    one, running = supervising(1)
    await until(lambda: len(made) == 1)
    made[0].become_ready()
    await until(lambda: len(said) == 1)
    refusals = iter([OSError(11, "no room"), OSError(11, "no room"), None])

    async def start(self, argv):
        if (error := next(refusals)) is not None:
            raise error

    monkeypatch.setattr(FakeChild, "start", start)
    made[0].die()
    await until(lambda: len(made) == 4)
    made[3].become_ready()
    await until(lambda: numbers(one) == [1, 0, 1, 1])
    one._signals.begin(drain=True)
    assert await running == 0


async def test_a_worker_that_starts_while_all_stop_is_drained(made, said, monkeypatch):
    """The order that the others got came before it was there."""
    one, running = supervising()
    await until(lambda: len(made) == 2)
    for child in made:
        child.become_ready()
    await until(lambda: len(said) == 1)
    slow = asyncio.Event()

    async def start(self, argv):
        await slow.wait()

    monkeypatch.setattr(FakeChild, "start", start)
    made[0].die()
    await until(lambda: len(made) == 3)
    one._signals.begin(drain=True)
    await until(lambda: made[1].orders == ["drain"])
    slow.set()
    assert await running == 0
    assert made[2].orders == ["drain"]
