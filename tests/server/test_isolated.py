"""The program of a child, over a real server: every transport, kills under load, and the end of the serving process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from google.protobuf import any_pb2

from invoker.client import SyncRiffClient
from invoker.execution.bodies.process import _config
from invoker.protocols.evergreen.configs import ActionConfig
from invoker.server.isolated import _configs
from tests.serving import TestServer

SLOW = float(os.environ.get("INVOKER_TEST_SLOW", "1"))
FN = "tests.execution.isolation.functions"

pytestmark = pytest.mark.timeout(15)  # each test starts a server, which starts children, up to twenty of them


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Start servers, which are stopped when the test ends."""
    monkeypatch.setenv("TEST_REAL_CHILDREN", "1")
    started: list[TestServer] = []

    def make(*flags: str) -> TestServer:
        started.append(TestServer(FN, *flags))
        return started[-1]

    yield make
    for one in started:
        one.close()


def pid_of(server: TestServer) -> int:
    return server._process.pid


def children_of(pid: int) -> list[int]:
    found = []
    for one in Path(f"/proc/{pid}/task").iterdir():
        found += [int(number) for number in (one / "children").read_text().split()]
    return found


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second if it goes while it is read
        return True


def post(server: TestServer, function: str, value: object) -> httpx.Response:
    return httpx.post(f"http://{server.http}/", json=value, headers={"Invoker-Function": function}, timeout=20 * SLOW)


@pytest.mark.parametrize("driver", ["fast", "aio"])
def test_every_transport_serves_isolated_functions(start: object, driver: str) -> None:
    """gRPC by both of its servers, and HTTP."""
    server = start("--grpc-driver", driver)  # type: ignore[operator]
    with SyncRiffClient(server.grpc) as client:
        got = client.invoke([[1, 2, 3]], metadata={"invoker-function": "accumulate"}).collect()
        assert [one.value for one in got] == [1, 3, 6]
    answer = post(server, "square", 7)
    assert (answer.status_code, answer.json()) == (200, 49)
    answer = post(server, "crash", "exit")
    assert answer.status_code == 500
    assert "exit code 3" in answer.text
    assert post(server, "label", 1).json() == 101


def test_killed_children_cost_the_calls_in_them_only(start: object) -> None:
    """Under load, each call that was in a killed child says so, and every other one has its answer."""
    server = start("--children", "4")  # type: ignore[operator]
    killed, until = set[int](), time.monotonic() + 2.0

    def calls(number: int) -> list[tuple[int, int, str]]:
        made = []
        while time.monotonic() < until:
            answer = post(server, "square", number)
            made.append((number, answer.status_code, answer.text))
        return made

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(calls, number) for number in (2, 3, 4)]
        while time.monotonic() < until - 0.3:
            for one in children_of(pid_of(server))[:1]:
                if one not in killed:
                    killed.add(one)
                    os.kill(one, signal.SIGKILL)
            time.sleep(0.1)
        results = [one for future in running for one in future.result()]
    failed = [text for _, status, text in results if status != 200]
    assert all(text.strip() == str(number**2) for number, status, text in results if status == 200)
    assert all("SIGKILL" in text for text in failed)
    assert len(failed) <= len(killed)
    assert len(killed) >= 2
    assert post(server, "square", 9).json() == 81


def test_children_end_with_the_serving_process(start: object) -> None:
    """Whether it is stopped, or killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        server = start()  # type: ignore[operator]
        assert post(server, "square", 7).json() == 49
        children = children_of(pid_of(server))
        assert children
        os.kill(pid_of(server), number)
        end = time.monotonic() + 10 * SLOW
        while not all(is_gone(one) for one in children):
            assert time.monotonic() < end, "a child has outlived the serving process"
            time.sleep(0.02)


def test_a_log_line_of_user_code_names_its_invocation(start: object) -> None:
    """Children write to the same standard error, in the same format, with the id that the ending has."""
    server = start("--log-format", "json")  # type: ignore[operator]
    post(server, "crash", "raise")
    end = time.monotonic() + 5 * SLOW
    while "this one is bad" not in server.log():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "raise ValueError" in server.log()


def test_E088_a_config_reaches_the_child_as_what_its_protocol_made() -> None:
    """Its class goes along, so the child knows no protocol; what is a dict stays one, and the rest stays here."""
    given = ActionConfig(any_pb2.Any(type_url="type.example/a.B", value=b"\x01"))
    sent = [_config(one) for one in ({"a": 1}, given, object())]
    assert sent[2] is None
    plain, found = _configs([one for one in sent if one is not None])
    assert plain == {"a": 1}
    assert (type(found), found.type_url, found.value) == (ActionConfig, given.type_url, given.value)
