"""Functions as an ASGI application: what it serves. Foreign hosts and servers are in tests/interop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import threading
import time
from collections.abc import AsyncIterator

import pytest

import invoker
from invoker.errors import ConfigError, LoadError
from tests.asgis import Caller, scope_of
from tests.conftest import SLOW
from tests.mounts import MARK, Model, ask, client, no_models, square, thread, worker  # noqa: F401 - a fixture


async def test_H096_it_answers_what_the_http_port_answers():
    """Functions, descriptions, models, health and metrics; nothing else is served, and nothing listens."""
    async with invoker.asgi(square, worker) as app, client(app) as one:
        assert (await one.post("/", json=7, headers={"Invoker-Function": "square"})).text == "49"
        assert [each["name"] for each in (await one.get("/functions")).json()["functions"]] == ["square", "worker"]
        assert (await one.get("/graphpipe/square")).json()["Name"] == "square"
        assert (await one.get("/livez")).text == "ok\n"
        assert (await one.get("/readyz")).text == "ok\n"
        assert "invoker_invocations" in (await one.get("/metrics")).text
        assert app.functions == ("square", "worker")
        assert repr(app) == "<Mounted square, worker>"


async def test_H096_the_page_is_there_if_it_is_asked_for_and_its_links_are_relative():
    """Nothing here knows whether only this machine can reach the host."""
    for settings, expected in (({}, 400), ({"page": "on"}, 200)):
        async with invoker.asgi(square, worker, **settings) as app:
            caller = Caller(app, scope_of("/fn/", root_path="/fn", method="GET", headers={"accept": "text/html"}))
            caller.give()
            status, text = await caller.answer()
            assert status == expected, text
    links = re.findall(r'(?:src|href)="([^"]*)"', text.decode())
    assert links
    assert [one for one in links if re.match(r"/|\w+:", one)] == []


@pytest.mark.parametrize(
    ("path", "root"),
    [("/fn/livez", "/fn"), ("/livez", "/fn"), ("/a/fn/livez", "/a/fn"), ("/fn/livez", "/fn/"), ("/livez", "")],
)
async def test_H096_paths_count_from_the_mount(path, root):
    """Whether the host has cut off its part of the path or not, which both are found."""
    async with invoker.asgi(square) as app:
        caller = Caller(app, scope_of(path, method="GET", root_path=root))
        caller.give()
        assert await caller.answer() == (200, b"ok\n")


async def test_H096_a_path_that_only_begins_like_the_mount_is_another():
    """/fnlivez is not /fn and livez; the mount itself is the root."""
    async with invoker.asgi(square) as app:
        caller = Caller(app, scope_of("/fn", root_path="/fn", headers={"content-type": "application/json"}))
        caller.give(b"3")
        assert await caller.answer() == (200, b"9")
        other = Caller(app, scope_of("/livezlivez", root_path="/livez", method="GET"))
        other.give()
        assert (await other.answer())[0] != 200


async def test_H096_applications_of_one_loop_do_not_disturb_each_other():
    """Each has its own limits, counts and life."""
    small, large = invoker.asgi(square, max_message_bytes=3), invoker.asgi(square)
    async with large:
        async with small:
            assert (await ask(small, value=12345)).status_code == 413
            assert (await ask(large, value=12345)).text == "152399025"
        assert (await ask(large, value=2)).text == "4"
        async with client(large) as one:
            counted = (await one.get("/metrics")).text
        assert 'invoker_invocations_total{status="OK"} 2.0' in counted or "2.0" in counted


async def test_H096_what_a_request_has_set_stays_its_own():
    """The server and its threads do not inherit the context of the request that has started them."""
    marks = []

    def fn(x: int) -> int:
        return x

    async def load() -> None:
        marks.append(MARK.get())

    fn.init = load
    app = invoker.asgi(fn)
    token = MARK.set("of a request")
    await ask(app)
    MARK.reset(token)
    assert marks == ["none"]


async def test_H099_async_functions_run_on_the_loop_and_sync_ones_in_threads():
    """As behind every transport."""
    async with invoker.asgi(thread, worker) as app:
        on_loop = (await ask(app, headers={"Invoker-Function": "thread", "Accept": "text/plain"})).text
        beside = (await ask(app, headers={"Invoker-Function": "worker", "Accept": "text/plain"})).text
    assert on_loop == threading.current_thread().name
    assert beside.startswith("invoker-body-")


async def test_H099_a_client_that_leaves_cancels_the_function():
    """While it runs, and while its body comes."""
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(x: int) -> int:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return x

    async with invoker.asgi(endless) as app:
        caller = Caller(app, scope_of(headers={"content-type": "application/json"}))
        caller.give(b"7")
        await entered.wait()
        caller.leave()
        await cancelled.wait()
        await caller.task
        assert caller.sent.empty()
        half = Caller(app, scope_of(headers={"content-type": "application/json"}))
        half.give(b"[1", more=True)
        half.leave()
        await half.task
        assert half.sent.empty()


async def test_H099_streams_pass_both_ways_as_they_come():
    """An item leaves before the next one has come; the end of the body ends the stream."""

    async def double(items: AsyncIterator[int]) -> AsyncIterator[int]:
        async for item in items:
            yield 2 * item

    ndjson = {"content-type": "application/x-ndjson", "accept": "application/x-ndjson"}
    async with invoker.asgi(double) as app:
        caller = Caller(app, scope_of("/double", headers=ndjson))
        caller.give(b"1\n", more=True)
        status, headers = await caller.head()
        assert (status, headers["content-type"]) == (200, "application/x-ndjson")
        assert "content-length" not in headers
        for item in (1, 2, 3):
            assert (await caller.sent.get())["body"] == b"%d\n" % (2 * item)
            if item < 3:
                caller.give(b"%d\n" % (item + 1), more=True)
        caller.give()
        assert await caller.rest() == b""


async def test_H099_a_function_waits_for_a_client_that_takes_nothing():
    """And is cancelled when that leaves, which some servers say by an error of send."""
    made, closed = [], asyncio.Event()

    async def endless(size: int) -> AsyncIterator[str]:
        try:
            while True:
                made.append(1)
                yield "x" * size
        finally:
            closed.set()

    async with invoker.asgi(endless) as app:
        headers = {"content-type": "application/json", "accept": "application/x-ndjson"}
        caller = Caller(app, scope_of("/endless", headers=headers), takes=False)
        caller.give(b"1000")
        while not made:  # noqa: ASYNC110 - a turn or two
            await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(made) < 300
        caller.leave()
        await closed.wait()
        await caller.task


async def test_H099_limits_hold():
    """Of bodies, and of invocations at once."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(x: int) -> int:
        entered.set()
        await go.wait()
        return x

    async with invoker.asgi(slow, max_message_bytes=10, max_invocations=1) as app:
        assert (await ask(app, value=[1] * 10)).status_code == 413
        running = asyncio.create_task(ask(app))
        await entered.wait()
        assert (await ask(app)).status_code == 503
        go.set()
        assert (await running).text == "7"


@pytest.mark.parametrize(
    ("headers", "settings", "status"),
    [
        ({"host": "any.example"}, {}, 200),
        ({"host": "any.example", "origin": "https://any.example"}, {}, 200),
        ({"host": "any.example", "origin": "https://evil.example"}, {}, 403),
        ({"host": "any.example", "sec-fetch-site": "cross-site"}, {}, 403),
        ({"host": "any.example", "origin": "https://evil.example"}, {"allowed_origins": "*"}, 200),
        ({"host": "any.example"}, {"allowed_hosts": ["other.example"]}, 403),
        ({"host": "other.example:80"}, {"allowed_hosts": ["other.example"]}, 200),
        ({"host": "localhost:8000"}, {"allowed_hosts": ["other.example"]}, 200),
        ({"host": "any.example"}, {"allowed_hosts": ["*"]}, 200),
        ({}, {"allowed_hosts": ["other.example"]}, 200),
    ],
)
async def test_H098_the_host_says_who_may_call_and_foreign_pages_may_not(headers, settings, status):
    """A transport whose sockets are others' knows no names of its own, unless it is told them."""
    async with invoker.asgi(square, **settings) as app:
        for more in ({}, {"server": None}, {"server": ("127.0.0.1", 80)}):
            caller = Caller(app, scope_of(headers={"content-type": "application/json", **headers}, **more))
            caller.give(b"7")
            found, body = await caller.answer()
            assert found == status, body
            if status == 403:
                assert b"; allowed_origins lists" in body or b" that allowed_hosts lists" in body


@pytest.mark.parametrize(
    ("functions", "settings", "error", "text"),
    [
        ((), {}, TypeError, "at least one function"),
        ((square,), {"max_mesage_bytes": 1}, TypeError, "did you mean 'max_message_bytes'?"),
        ((square,), {"port": 80}, ConfigError, "port is for ports and processes of invoker's own"),
        ((square,), {"graphpipe_tcp": "h:1"}, ConfigError, "graphpipe_tcp is for ports and processes of invoker's own"),
        ((square,), {"federated": "a.toml"}, ConfigError, "federated is for ports and processes of invoker's own"),
        ((square,), {"workers": 2}, ConfigError, "workers is for"),
        ((square,), {"protocols": "riff,http"}, ConfigError, "protocols has riff, which needs the gRPC port"),
        ((square,), {"protocols": ["graphpipe"], "graphpipe_tcp": "a:1"}, ConfigError, "graphpipe_tcp is for ports"),
        (("no.such:thing",), {}, LoadError, "no.such"),
    ],
)
def test_H096_what_cannot_be_served_is_said_when_it_is_made(functions, settings, error, text):
    """While the host application is imported, and not at the first request."""
    with pytest.raises(error) as raised:
        invoker.asgi(*functions, **settings)
    assert text in str(raised.value)


def test_H096_without_http_nothing_would_be_served(monkeypatch):
    """Which the environment may say as well."""
    monkeypatch.setenv("INVOKER_PROTOCOLS", "riff")
    with pytest.raises(ConfigError, match="protocols does not have http, so nothing would be served here"):
        invoker.asgi(square)


async def test_H096_nobody_watches_the_loop_of_the_host():
    """Unless it is asked for: what blocks the loop may be the host's own."""
    for settings, watched in (({}, False), ({"blocked_s": 1}, True)):
        async with invoker.asgi(thread, **settings):
            assert ("invoker-watchdog" in [one.name for one in threading.enumerate()]) == watched


def test_H096_variables_of_ports_and_processes_are_left_aside(monkeypatch):
    """The environment may be that of a command line, too."""
    for name, value in {"INVOKER_WORKERS": "4", "PORT": "nonsense", "INVOKER_TLS_CERT": "/no/such"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("INVOKER_MAX_MESSAGE_BYTES", "77")
    assert invoker.asgi(square)._config.max_message_bytes == 77


async def test_H099_nothing_is_left_of_it():
    """No thread, task, descriptor or handler."""

    async def run() -> None:
        async with invoker.asgi(square, thread, worker) as app:
            for name in app.functions:
                assert (await ask(app, headers={"Invoker-Function": name})).status_code == 200

    await run()
    before = counted()
    for _ in range(3):
        await run()
    assert settled(before) == before


def settled(before: tuple[int, *tuple[object, ...]]) -> tuple[object, ...]:
    """What is left, once gRPC has closed descriptors in its own threads; those of other tests may go, too."""
    until = time.monotonic() + SLOW
    while (now := counted()) != before and time.monotonic() < until:
        if now[0] < before[0] and now[1:] == before[1:]:
            return before
        time.sleep(0.01)
    return now


def counted() -> tuple[int, *tuple[object, ...]]:
    gc.collect()
    return (
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - a number
        sorted(one.name for one in threading.enumerate()),
        [one.get_name() for one in asyncio.all_tasks()],
        [(one.level, list(one.handlers)) for one in (logging.getLogger(), logging.getLogger("invoker"))],
        gc.get_threshold(),
    )
