"""`invoker.protocols.web.service.unary`: requests with one head, as calls without a session."""

from __future__ import annotations

from typing import Any

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.budget import Limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.http import RequestHead
from invoker.errors import FunctionError
from invoker.message import Message
from invoker.protocols.web.fields import signature_of
from invoker.protocols.web.http import HttpSession
from invoker.protocols.web.service.unary import UnaryRequests

JSON = "application/json"


def square(x: int) -> int:
    return x * x


def add(a: int, b: int) -> int:
    return a + b


def total(*xs: int) -> int:
    return sum(xs)


def asks(x: int, ctx: Any = None) -> int:
    return x


def engine_of(*functions: Any, limits: Limits | None = None, **more: Any) -> Engine:
    catalog = Catalog([prepare_function(one).function for one in functions], **more)
    return Engine(catalog, builtin(entry_points=False), limits=limits)


def requests(
    engine: Engine, *, query: str = "", content_type: str = JSON, most_bytes: int = 100, method: str = "POST"
) -> UnaryRequests:
    """Requests with a head that names the only function."""
    (function,) = engine.catalog
    signature = signature_of(function.spec, engine.registry_for(function))
    session = HttpSession(lambda _: signature, max_body_bytes=most_bytes)
    session.receive(RequestHead(method, "/", query, headers=(("Content-Type", content_type),)))
    return UnaryRequests(session.asked, engine, most_bytes=most_bytes)


def payloads(found: Any) -> list[bytes]:
    return [one.payload for one in found[1].messages]


def test_a_body_that_is_one_value_is_the_only_message() -> None:
    """With the plan of the requests before it, until the codecs change."""
    engine = engine_of(square)
    asked = requests(engine)
    first, second = asked.call(b"3"), asked.call(b"4")
    assert first is not None
    assert second is not None
    assert (payloads(first), payloads(second)) == ([b"3"], [b"4"])
    assert first[0] is second[0]
    made: list[Any] = []
    plan = engine.plan
    engine.plan = lambda command: made.append(command) or plan(command)  # type: ignore[func-returns-value,method-assign]
    assert asked.call(b"5")
    assert made == []
    engine.limit_calls(5)
    assert asked.call(b"5") is None  # such calls are counted, by invocations that have a limit
    engine.limit_calls(0)
    third = asked.call(b"5")
    assert third is not None
    assert third[0] is not first[0]


def test_messages_come_in_the_order_of_the_inputs() -> None:
    """Whatever the order of the parameters in the body and the query."""
    engine = engine_of(add)
    asked = requests(engine)
    for body in (b'{"a": 30, "b": 4}', b'{"b": 4, "a": 30}'):
        found = asked.call(body)
        assert found is not None
        call = dict(zip(found[1].open.input_names, payloads(found), strict=True))
        assert call == {"a": b"30", "b": b"4"}
        assert found[0].input_names == found[1].open.input_names
    found = requests(engine, query="b=4").call(b'{"a": 30}')
    assert found is not None
    assert sorted(payloads(found)) == [b"30", b"4"]


def test_what_is_wrong_takes_a_session() -> None:
    """Which says what it is."""
    engine = engine_of(square)
    asked = requests(engine)
    assert asked.call(b"1" * 100) is not None
    assert asked.call(b"1" * 101) is None
    assert requests(engine, content_type="application/x-doom").call(b"3") is None
    assert requests(engine_of(add)).call(b'{"a": 1}') is None
    assert requests(engine_of(add)).call(b"{") is None


def test_what_passes_the_limits_of_an_invocation_takes_a_session() -> None:
    """Parameters of the query come in addition to the body, and each may be an input."""
    engine = engine_of(add, limits=Limits(hard_bytes=50))
    assert requests(engine, query="a=" + "1" * 20).call(b'{"b": ' + b"1" * 20 + b"}") is not None
    assert requests(engine, query="a=" + "1" * 30).call(b'{"b": ' + b"1" * 30 + b"}") is None
    engine = engine_of(total, limits=Limits(hard_frames=3))
    assert requests(engine).call(b'{"xs": [1, 2, 3]}') is not None
    assert requests(engine).call(b'{"xs": [1, 2, 3, 4]}') is None


def test_R010_a_function_that_is_made_anew_is_made_once_for_a_call() -> None:
    """So its calls take a session, which makes it."""
    made: list[Any] = []
    engine = engine_of(square, renew=lambda function: made.append(function) or function)  # type: ignore[func-returns-value]
    assert requests(engine).call(b"3") is None
    assert made == []


def test_a_function_that_asks_for_more_takes_a_session() -> None:
    """Its plan says so."""

    def streams(x: int) -> Any:
        yield x

    assert requests(engine_of(streams)).call(b"3") is None


def test_responses_are_those_of_a_session() -> None:
    """A value, an error, and neither."""
    asked = requests(engine_of(square))
    found = asked.call(b"3")
    assert found is not None
    names = found[1].open.input_names
    value = asked.response(names, b"3", Message(b"9", {}, JSON), None)
    assert (value.status, value.body) == (200, b"9")
    failed = asked.response(names, b"3", None, FunctionError("boom"))
    assert (failed.status, b"boom" in failed.body) == (500, True)
    nothing = asked.response(names, b"3", None, None)
    assert (nothing.status, b"gave no value" in nothing.body) == (500, True)
