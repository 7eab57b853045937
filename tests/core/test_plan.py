"""What negotiation decides, made once and kept."""

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from invoker.author.lift import Function
from invoker.author.prepare import prepare_function
from invoker.codecs import TextCodec, builtin, custom
from invoker.core import plan as plans_module
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.plan import MOST_BYTES, Plans
from invoker.core.steps import Feed, Open, Terms
from invoker.errors import NotAcceptable, ProtocolViolation, UnsupportedMediaType
from invoker.message import Message, Output


def scale(xs: Iterator[int], factor: int = 2) -> Iterator[int]:
    yield from ()


def tagged(xs: Iterator[str]) -> Iterator[Output]:
    yield from ()


def function_of(function: Any = scale) -> Function:
    return prepare_function(function).function


def plans_of() -> Plans:
    from contextlib import nullcontext

    return Plans(builtin(entry_points=False), nullcontext())


ASKED = {"accepts": ("text/plain",), "input_names": ("xs", "factor"), "output_names": ("out",)}


def test_what_is_asked_again_has_the_same_plan() -> None:
    """The key of the session, metadata and configs are of the invocation, not of the plan; nobody alters a plan."""
    plans, function = plans_of(), function_of()
    first = plans.of(function, Open("a", "scale", **ASKED))
    assert plans.of(function, Open("b", "", **ASKED, metadata={"a": "b"}, configs=(1,))) is first
    assert len(plans) == 1
    assert (first.input_names, first.output_names, first.accepts) == (("xs", "factor"), ("out",), ("text/plain",))
    assert [one.spec.name for one in first.inputs] == ["xs", "factor"]
    with pytest.raises(FrozenInstanceError):
        first.accepts = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "changed",
    [
        {"accepts": ("application/json",)},
        {"input_names": ("other", "factor")},
        {"output_names": ("other",)},
        {"bound": ("xs",), "input_names": ()},
        {"terms": Terms.LOOSE},
        {"unwanted": (0,)},
    ],
)
def test_whatever_a_caller_says_makes_another_plan(changed: dict[str, Any]) -> None:
    """And does not take the place of the first one; another function has plans of its own."""
    plans, function = plans_of(), function_of()
    first = plans.of(function, Open("a", **ASKED))
    assert plans.of(function, Open("a", **{**ASKED, **changed})) is not first
    assert plans.of(function_of(), Open("a", **ASKED)) is not first
    assert plans.of(function, Open("a", **ASKED)) is first
    assert len(plans) == 3


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"accepts": ("text/plain",) * 2}, ProtocolViolation), ({"accepts": ("image/png",)}, NotAcceptable)],
)
def test_a_refusal_is_not_kept(wrong: dict[str, Any], error: type[Exception]) -> None:
    """It is found again each time."""
    plans, function = plans_of(), function_of()
    for _ in range(2):
        with pytest.raises(error):
            plans.of(function, Open("a", **{**ASKED, **wrong}))
    assert len(plans) == 0


def test_R011_a_peer_that_invents_names_neither_fills_the_memory_nor_displaces_what_is_used() -> None:
    """Two generations of plans at most; the one in use stays, and the one that nobody used goes."""
    plans, function = plans_of(), function_of()
    idle = plans.of(function, Open("a", output_names=("idle",)))
    used = plans.of(function, Open("a", **ASKED))
    for number in range(3 * plans_module.MOST_PLANS):
        plans.of(function, Open("a", output_names=(f"name {number}",)))
        if number % 100 == 0:
            assert plans.of(function, Open("a", **ASKED)) is used
        assert len(plans) <= 2 * plans_module.MOST_PLANS
    assert plans.of(function, Open("a", output_names=("idle",))) is not idle


def test_R011_plans_are_bounded_in_bytes() -> None:
    """Large ones leave earlier, and one that is too large is used but not kept."""
    plans, function = plans_of(), function_of(tagged)
    for number in range(100):
        plans.of(function, Open("a", output_names=(f"{number}" + "x" * 100_000,), accepts=("*/*",)))
    assert 0 < len(plans) <= 2 * MOST_BYTES // 800_000
    before = len(plans)
    huge = Open("a", output_names=("x" * MOST_BYTES,), accepts=("*/*",))
    assert plans.of(function, huge).outputs[0].name == huge.output_names[0]
    many = Open("a", accepts=("*/*",) * 1000)
    assert len(plans.of(function, many).outputs) == 1000
    assert len(plans) == before
    assert plans.of(function, many) is not plans.of(function, many)


def test_a_plan_may_be_kept_under_other_keys() -> None:
    """Such as the bytes that asked for it; the same bounds hold, and keeping it twice counts it once."""
    plans, function = plans_of(), function_of()
    made = plans.of(function, Open("a", **ASKED))
    for _ in range(1000):
        plans.keep(("scale", b"\x0a\x02"), made, MOST_BYTES // 10)
    assert plans.find(("scale", b"\x0a\x02")) is made
    assert plans.of(function, Open("a", **ASKED)) is made
    assert plans.find(("scale", b"\x0a")) is None


class Shouted(TextCodec):
    """A codec of a media type that no other has."""

    media_types = ("text/x-shouted",)


def engine_of(function: Any = scale, **settings: Any) -> Engine:
    return Engine(Catalog([function_of(function)], **settings), builtin(entry_points=False))


def speaks(engine: Engine) -> bool:
    """Whether a function takes and gives the media type of `Shouted`."""
    try:
        invocation = engine.open(Open("a", accepts=("text/x-shouted",)))
    except NotAcceptable:
        with pytest.raises(UnsupportedMediaType):
            engine.open(Open("a")).feed(Feed("a", 0, Message(b"1", media_type="text/x-shouted")))
        return False
    invocation.feed(Feed("a", 0, Message(b"1", media_type="text/x-shouted")))
    return invocation.encode(0, 1)[1].media_type == "text/x-shouted"


def test_R090_a_codec_that_is_registered_after_the_first_call_is_seen() -> None:
    """Whether it is registered with the engine's registry or with the process."""
    engine = engine_of()
    assert not speaks(engine)
    kept = engine.open(Open("a")).outputs[0].encode
    assert engine.open(Open("a")).outputs[0].encode == kept
    engine.registry.register(Shouted)
    assert speaks(engine)
    assert engine.open(Open("a")).outputs[0].encode != kept

    engine = engine_of()
    assert not speaks(engine)
    custom.register(Shouted)
    try:
        assert speaks(engine)
    finally:
        custom.unregister(Shouted)
    assert not speaks(engine)


def test_R010_the_plan_of_a_function_that_is_made_anew_is_not_kept() -> None:
    """Each invocation runs its own function, and nothing holds it afterwards."""
    engine = engine_of(renew=lambda _: function_of())
    functions = {engine.open(Open("a", **ASKED)).function for _ in range(3)}
    assert len(functions) == 3
    assert len(engine.plans) == 0
