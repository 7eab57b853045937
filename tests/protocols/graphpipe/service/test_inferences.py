"""`invoker.protocols.graphpipe.service.inferences`: requests through the machinery, without a transport."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Context
from invoker.errors import Status, StatusError
from invoker.message import Headers
from invoker.protocols.graphpipe.service import inferences as module
from invoker.protocols.graphpipe.service.inferences import GraphPipeSettings, Inferences
from invoker.tensors import Code
from tests.protocols.graphpipe.asking import ask, code_of, received, values
from tests.transports.models import inferring
from tests.transports.served import until


def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


async def aecho(x: NDArray[Any]) -> NDArray[Any]:
    return x


def nothing(x: list[float]) -> NDArray[Any]:
    return None  # type: ignore[return-value]  # the mistake


def failing(x: list[float]) -> NDArray[Any]:
    raise ValueError(x)


def plain(a: int, b: float = 0.5) -> list[float]:
    return [a + b, 2.0]


@pytest.mark.parametrize("function", [echo, aecho])
async def test_G050_sync_and_async_functions_infer(function: Any) -> None:
    """Every type of array comes back as it went."""
    async with inferring(function) as one:
        for value in (np.float16([1.5]), np.zeros((0, 3), "u8"), np.array(["a\0", "é"], object), np.int8(3)):
            response = await one.infer(one.first, bytearray(ask(value)), transport="test")
            expected = [item.encode() if isinstance(item, str) else item for item in np.atleast_1d(value).tolist()]
            assert np.atleast_1d(np.array(values(response)[0], object)).tolist() == expected


async def test_G074_functions_without_arrays_infer() -> None:
    """Tensors of one element are values; the result is a tensor again."""
    async with inferring(plain) as one:
        assert values(await one.infer(one.first, bytearray(ask(np.int32([2]), 1.5)), transport="test")) == [[3.5, 2.0]]
        assert values(await one.infer(one.first, bytearray(ask(2)), transport="test")) == [[2.5, 2.0]]


async def test_G102_large_buffers_are_read_and_written_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones on the loop, where that takes less."""
    threads: list[bool] = []
    prepare = module.prepare

    def noted(*args: Any, **more: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return prepare(*args, **more)

    monkeypatch.setattr(module, "prepare", noted)
    async with inferring(aecho) as one:
        for size in (10, 300_000):
            response = await one.infer(one.first, bytearray(ask(np.zeros(size, "f4"))), transport="test")
            assert response.size > 4 * size
    assert threads == [True, False]


async def test_G105_G106_one_line_a_request(caplog: pytest.LogCaptureFixture) -> None:
    """Types, shapes, code, what is wrong, and duration; neither values nor the config."""
    caplog.set_level(logging.INFO, "invoker.protocols.graphpipe.service.inferences")
    async with inferring(echo) as one:
        await one.infer(one.first, bytearray(ask([41], config=b"secret")), transport="POST /graphpipe")
        await one.infer(one.first, bytearray(b"x"), transport="socket")
    good, bad = (record for record in caplog.records if record.name == "invoker.protocols.graphpipe.service.inferences")
    assert good.getMessage() == "POST /graphpipe answered"
    assert (good.request, good.code, bad.code) == ("infer x:Int64[1]", 0, 1)  # type: ignore[attr-defined]
    assert (hasattr(good, "detail"), bad.detail) == (False, "1 bytes are too few for a buffer")  # type: ignore[attr-defined]
    assert not any("secret" in str(vars(one)) for one in (good, bad))


def choose(mode: Literal["a", "b"]) -> int:
    return len(mode)


async def refuse(mode: str, ctx: Context) -> int:
    raise StatusError(Status.UNAVAILABLE, f"not now, {mode} {ctx.config(str)}")


async def test_G105_G106_what_codecs_and_functions_say_of_values_is_told_to_the_client_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A codec names the value that it cannot take; a function may name anything."""
    caplog.set_level(logging.DEBUG)
    async with inferring(choose, refuse) as one:
        for name in ("choose", "refuse"):
            request = bytearray(ask("s3cret", config=b"s3cret"))
            response = await one.infer(one.models[name], request, transport="test")
            assert response.error is not None
            assert "s3cret" in response.error.detail
    assert not any("s3cret" in str(vars(record)) for record in caplog.records)
    assert len(caplog.records) >= 2


async def test_G105_an_authors_mistake_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """At once, whoever takes the other lines; what a client did wrong is none."""
    noted: list[dict[str, Any]] = []
    caplog.set_level(logging.INFO, "invoker.protocols.graphpipe.service.inferences")
    async with inferring(nothing, failing) as made:
        one = Inferences(made.driver, made.settings, note=lambda _name, _text, extra: noted.append(extra))
        for name, value in (("nothing", [1.0]), ("failing", [1.0]), ("nothing", [[1.0]])):
            await one.infer(one.models[name], bytearray(ask(value)), transport="test")
    warned = [
        vars(record) for record in caplog.records if record.name == "invoker.protocols.graphpipe.service.inferences"
    ]
    assert [(one["levelname"], one["code"]) for one in warned] == [("WARNING", 18), ("WARNING", 14)]
    assert str(warned[0]["detail"]).startswith("output 'output0' 'out' is declared ndarray, and the function gave None")
    assert [extra["code"] for extra in noted] == [8]


async def test_G084_errors_say_what_clients_know() -> None:
    """Names and types of their tensors, where the machinery has numbers and media types of its own."""
    async with inferring(nothing) as one:
        for value, text in (
            ([[1.0, 2.0]], "input 'x': Float64 [1, 2] cannot become list[float]: Expected `float`, got `array`"),
            ([1.0], "output 'output0' 'out' is declared ndarray, and the function gave None"),
        ):
            response = await one.infer(one.first, bytearray(ask(value)), transport="test")
            assert text in received(response).errors[0].message


@pytest.mark.parametrize(("kind", "is_told"), [("application/json; charset=utf-8", True), ("image/png", False)])
async def test_G021_json_is_told_from_a_broken_buffer(kind: str, is_told: bool) -> None:
    """Where it says that it is JSON; other words of a client are not repeated."""
    async with inferring(echo) as one:
        metadata = Headers({"content-type": kind})
        response = await one.infer(one.first, bytearray(b"[[1, 2]]"), metadata=metadata, transport="POST /")
    expected = b"it came as application/json, and a GraphPipe buffer is expected here"
    assert (code_of(response), expected in bytes(response)) == (Code.MALFORMED, is_told)
    assert b"image" not in bytes(response)


async def test_G105_who_takes_lines_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    """Instead of the log."""
    noted: list[tuple[str, str, dict[str, Any]]] = []
    caplog.set_level(logging.INFO, "invoker.protocols.graphpipe.service.inferences")
    async with inferring(echo) as made:
        told = Inferences(made.driver, GraphPipeSettings(), note=lambda *line: noted.append(line))
        await told.infer(told.first, bytearray(ask(np.float32([[1, 2]]))), transport="POST /x")
    ((name, text, extra),) = noted
    assert (name, text, extra["code"]) == ("invoker.protocols.graphpipe.service.inferences", "POST /x answered", 0)
    assert not caplog.records


async def test_a_defect_of_ours_is_not_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and is E14 to the peer."""

    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("inside")

    monkeypatch.setattr(module, "prepare", broken)
    async with inferring(echo) as one:
        response = await one.infer(one.first, bytearray(ask([1])), transport="test")
    assert code_of(response) is Code.FUNCTION_FAILED
    assert b"inside" not in bytes(response)
    assert "inside" in caplog.text


async def test_G004_the_limit_is_not_above_what_an_invocation_may_hold() -> None:
    """Else a request would be taken that cannot be fed."""
    async with inferring(echo, limit_bytes=1 << 40) as one:
        assert one.limit_bytes == 64 * 1024 * 1024


class Body(bytearray):
    """A request that can be watched."""


@pytest.mark.parametrize("function", [echo, aecho, plain])
async def test_G103_nothing_is_kept_of_a_request(function: Any) -> None:
    """Not until the garbage is collected: large ones would pile up before that; also of one that fails."""
    gc.collect()
    gc.disable()
    try:
        async with inferring(function) as one:
            body = Body(ask(np.zeros(300_000, "f4")))
            watched = weakref.ref(body)
            response = await one.infer(one.first, body, transport="test")
            assert (response.error is None) is (function is not plain)
            del body, response
            await until(lambda: watched() is None)
    finally:
        gc.enable()
