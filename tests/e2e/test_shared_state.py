"""Host sessions and variables that processes share: a file, a Redis server, workers; restarts and kills."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.serving import serving
from tests.stores.servers import RedisServer
from tests.transports.bridge import SERVICE, error_of, packed, unpacked

FUNCTIONS = "tests/e2e/variable_functions.py:add"
MODULE = "tests/e2e/variable_functions.py"
_METHODS = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name


class Host:
    """A host program with a connection of its own."""

    def __init__(self, address: str, session: str = "s1") -> None:
        self.session = session
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])

    def rpc(self, name: str, /, **fields: Any) -> Any:
        method = _METHODS[name]
        reads, answers = getattr(pb, method.input_type.name), getattr(pb, method.output_type.name)
        kind = self.channel.unary_stream if name == "WatchSessionVariables" else self.channel.unary_unary
        call = kind(f"/{SERVICE}/{name}", reads.SerializeToString, answers.FromString)
        return call(reads(session_id=self.session, **fields), timeout=10 * SLOW)

    def begin(self) -> None:
        response = self.rpc("InitializeSession")
        assert response.success, response

    def put(self, name: str, value: Any) -> Any:
        return self.rpc("SetSessionVariable", variable_name=name, value=packed(value), create_if_missing=True)

    def get(self, name: str) -> Any:
        return unpacked(self.rpc("GetSessionVariable", variable_name=name).value)

    def add(self, step: Any, tool: str = "add") -> Any:
        response = self.rpc("ExecuteTool", tool_id=tool, args=[packed(step)])
        assert response.success, response
        return unpacked(response.result)


@pytest.fixture
def hosts() -> Iterator[Callable[..., Host]]:
    made: list[Host] = []

    def host(address: str, *session: str) -> Host:
        made.append(Host(address, *session))
        return made[-1]

    yield host
    for one in made:
        one.channel.close()


def env(store: str) -> dict[str, str]:
    return {"INVOKER_PROTOCOLS": "riff,toolbridge", "INVOKER_STORE": store}


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What INVOKER_STORE says."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'store.db'}"
        return
    server = RedisServer(tmp_path)
    yield server.url
    server.close()


@pytest.mark.timeout(30)
def test_two_processes_share_sessions_and_variables(store: str, hosts: Callable[[str], Host]) -> None:
    """What one writes, a watch in the other hears; tools of both run in the session; both outlive the processes."""
    with ExitStack() as stack:
        one, two = (hosts(stack.enter_context(serving(FUNCTIONS, env=env(store))).grpc) for _ in range(2))
        one.begin()
        one.put("a", 1)
        watch = two.rpc("WatchSessionVariables", include_initial=True)
        assert unpacked(next(watch).value) == 1
        for number in range(2, 50):
            one.put("a", number)
        assert [unpacked(next(watch).value) for _ in range(2, 50)] == list(range(2, 50))
        watch.cancel()
        (first, here), (second, there) = one.add(5), two.add(6)
        assert (first, second) == (5, 11)
        assert here != there
        assert two.rpc("GetSessionInfo").variable_count == 2
    with serving(FUNCTIONS, env=env(store)) as later:
        again = hosts(later.grpc)
        assert (again.get("a"), again.get("sum")) == (49, 11)
        assert again.add(1)[0] == 12
        assert again.rpc("CleanupSession").success
        with pytest.raises(grpc.RpcError) as caught:
            again.rpc("GetSessionInfo")
        assert error_of(caught.value)[1].details["code"] == "cleaned"


@pytest.mark.timeout(40)
def test_workers_share_a_store_without_being_told(hosts: Callable[[str], Host]) -> None:
    """Whichever of them a connection comes to, the session is there, and each sees what the others wrote."""
    with serving(FUNCTIONS, "--workers", "2", env={"INVOKER_PROTOCOLS": "riff,toolbridge"}) as served:
        hosts(served.grpc).begin()
        pids: set[int] = set()
        for number in range(1, 60):
            total, pid = hosts(served.grpc).add(1)
            pids.add(pid)
            assert total == number
            if len(pids) == 2:
                break
        assert len(pids) == 2


@pytest.mark.timeout(30)
def test_T126_isolated_functions_have_variables_as_well(hosts: Callable[[str], Host]) -> None:
    """By their pipe; sync and async ones, and their errors."""
    with serving(MODULE, env=env("memory")) as served:
        host = hosts(served.grpc)
        host.begin()
        assert host.add(1)[0] == 1
        total, apart = host.add(2, "add_apart")
        assert total == 3
        assert apart != host.add(0)[1]
        assert host.add(3, "add_apart_async")[0] == 6
        assert host.get("sum") == 6
        assert host.add("", "misname") == "variable_name"


@pytest.mark.timeout(60)
def test_a_redis_server_that_is_killed_under_load_fails_its_calls_alone(
    tmp_path: Path, hosts: Callable[[str], Host]
) -> None:
    """With a clear error, in the response or as UNAVAILABLE; the process goes on, and works when the server is back."""
    redis = RedisServer(tmp_path)
    errors: list[str] = []
    stop = threading.Event()

    def load(host: Host) -> int:
        count = 0
        while not stop.is_set():
            response = host.put("a", count)
            count += response.success
            if not response.success:
                errors.append(response.error.details["code"])
        return count

    with ExitStack() as stack:
        served = stack.enter_context(serving(FUNCTIONS, env=env(redis.url)))
        host = hosts(served.grpc)
        host.begin()
        watch = host.rpc("WatchSessionVariables", variable_names=["never"])
        pool = stack.enter_context(ThreadPoolExecutor(4))
        loading = [pool.submit(load, hosts(served.grpc)) for _ in range(4)]
        while host.get("a") is None or host.get("a") < 20:
            assert not errors
        redis.kill()
        with pytest.raises(grpc.RpcError) as caught:
            next(watch)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as caught:
            host.get("a")
        assert error_of(caught.value)[1].details["code"] == "store"
        while len(errors) < 20:
            time.sleep(0.001)
        redis.start()
        began = time.monotonic()
        while not host.rpc("InitializeSession").success:  # the server kept nothing, so the session is made anew
            assert time.monotonic() - began < 5 * SLOW
        host.put("b", 1)
        assert host.get("b") == 1
        known = len(errors)
        stop.set()
        assert all(one.result() for one in loading)
        assert set(errors[:known]) <= {"store", "unknown"}
    redis.close()


TTL_S = 2.0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])
def test_T010_T011_T131_a_watch_ends_with_its_session(
    kind: str, hosts: Callable[..., Host], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two seconds after its time to live at the latest, and not before; also after a long call, in a process that has
    not made the session, and where there was nothing for a while."""
    url = f"sqlite:{tmp_path / 'store.db'}"
    if kind == "redis":
        server = RedisServer(tmp_path)
        request.addfinalizer(server.close)
        url = server.url
    known = {**env("memory" if kind == "memory" else url), "INVOKER_TOOL_SESSION_TTL_S": str(TTL_S)}
    with ExitStack() as stack:
        count = 1 if kind == "memory" else 2
        served = [stack.enter_context(serving(MODULE, env=known)).grpc for _ in range(count)]
        time.sleep(1.1)  # the stores have looked at what there is meanwhile, which is nothing
        pool = stack.enter_context(ThreadPoolExecutor())
        lasting = [
            pool.submit(expires, [hosts(one, f"s-{last_use}") for one in served], last_use)
            for last_use in ("InitializeSession", "add_slowly", "ListSessionVariables")
        ]
        for one in lasting:
            one.result()


def expires(served: list[Host], last_use: str) -> None:
    """A session that is used for the last time by this."""
    served[0].begin()
    with ThreadPoolExecutor() as pool:
        ends = [pool.submit(watched, one) for one in served]
        time.sleep(0.5)
        if last_use == "add_slowly":
            assert served[0].rpc("ExecuteTool", tool_id="add_slowly").success
        else:
            served[0].rpc(last_use)
        used = time.monotonic()
        for one in ends:
            code, at = one.result(20 * SLOW)
            assert code == "expired"
            assert TTL_S - 1.1 <= at - used <= TTL_S + 2 * SLOW, (last_use, at - used)


def watched(host: Host) -> tuple[str, float]:
    """Why a watch ended, and when."""
    with pytest.raises(grpc.RpcError) as caught:
        list(host.rpc("WatchSessionVariables"))
    return error_of(caught.value)[1].details["code"], time.monotonic()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_store_that_hangs_delays_nobody_for_long(
    kind: str, hosts: Callable[[str], Host], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A server that is stopped, a file that somebody has locked: each rpc hears of it within two seconds, later ones at
    once; tools of sessions that are known go on. When it is over, everything works again."""
    if kind == "redis":
        server = RedisServer(tmp_path)
        request.addfinalizer(server.close)
        request.addfinalizer(lambda: server.process.send_signal(signal.SIGCONT))
        url, hang, go_on = server.url, *(partial(server.process.send_signal, one) for one in STOP)
    else:
        locking = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
        request.addfinalizer(locking.close)
        url = f"sqlite:{tmp_path / 'store.db'}"
        hang, go_on = (partial(locking.execute, one) for one in ("BEGIN IMMEDIATE", "ROLLBACK"))
    with serving(MODULE, env=env(url)) as served:
        host = hosts(served.grpc)
        host.begin()
        host.put("a", 1)
        hang()
        try:
            with ThreadPoolExecutor(len(NEED_STORE)) as pool:
                for most in (2.0, 0.0, 0.0):
                    asked = [pool.submit(failing, host, *one) for one in NEED_STORE.items()]
                    for name, one in zip(NEED_STORE, asked, strict=True):
                        assert one.result(20 * SLOW) < most + 0.7 * SLOW, name
            began = time.monotonic()
            assert host.rpc("ExecuteTool", tool_id="echo", args=[packed(5)]).success
            assert time.monotonic() - began < 0.7 * SLOW
        finally:
            go_on()
        until = time.monotonic() + 15 * SLOW
        while not host.put("a", 2).success:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert host.get("a") == 2


STOP = (signal.SIGSTOP, signal.SIGCONT)
NEED_STORE: dict[str, dict[str, Any]] = {
    "InitializeSession": {},
    "SetSessionVariable": {"variable_name": "a", "value": packed(1), "create_if_missing": True},
    "GetSessionVariable": {"variable_name": "a"},
    "ListSessionVariables": {},
    "GetSessionInfo": {},
    "GetSessionTools": {},
    "WatchSessionVariables": {},
    "ExecuteTool": {"tool_id": "add", "args": [packed(1)]},
}


def failing(host: Host, name: str, fields: dict[str, Any]) -> float:
    """How long an rpc takes to say that it fails, because the store cannot be reached."""
    began = time.monotonic()
    try:
        answer = host.rpc(name, **fields)
        error = list(answer)[-1].error if name == "WatchSessionVariables" else answer.error
    except grpc.RpcError as caught:
        error = error_of(caught)[1]
    took = time.monotonic() - began
    assert error.details["code"] == "store", (name, error)
    return took
