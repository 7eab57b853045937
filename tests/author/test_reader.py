"""What `invoker.author.reader.read` makes of signatures."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional

import pytest

from invoker.author.decorator import function
from invoker.author.reader import read
from invoker.author.spec import IGNORED, ResultShape, Style, Take
from invoker.errors import HookError, SpecError
from invoker.message import Headers, Message, Output
from invoker.testing import Harness

if TYPE_CHECKING:
    from collections.abc import Generator
    from decimal import Decimal


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[str]


class Model:
    """A model."""

    def __call__(self, image: bytes) -> str:
        return "cat"


def square(x: int) -> int:
    """Square it.

    More.
    """
    return x * x


def mean(xs: Iterator[float]) -> Iterator[float]:
    yield from xs


async def chat(prompts: AsyncIterator[str]) -> AsyncIterator[str]:
    async for prompt in prompts:
        yield prompt


def total(xs: Iterator[int]) -> int:
    return sum(xs)


def store(xs: Iterator[int]) -> None:
    list(xs)


def ticks() -> Iterator[int]:
    yield 1


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    yield from list(items)[:k]


def split(xs: Iterator[int]) -> Split:
    return Split(iter([1]), iter(["a"]))


def pair(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[str]]:
    return iter([1]), iter(["a"])


def several(xs: Iterator[int]) -> tuple[Iterator[int], ...]:
    return (xs,)


def tag(xs: Iterator[str]) -> Iterator[Output]:
    yield Output("a", 1)


def maybe_tag(xs: Iterator[str]) -> Iterator[int | Output]:
    yield Output("a", 1)


def types_of(spec: Any) -> list[Any]:
    return [stream.type for stream in spec.inputs]


def names_of(streams: Any) -> list[str]:
    return [stream.name for stream in streams]


def test_R030_a_plain_function_is_request_reply_with_one_input_and_one_output() -> None:
    """A value in, a value out."""
    spec = read(square, entrypoint="m:square")
    assert (spec.name, spec.entrypoint, spec.style) == ("square", "m:square", Style.REQUEST_REPLY)
    assert types_of(spec) == [int]
    assert [stream.type for stream in spec.outputs] == [int]
    assert (spec.is_async, spec.open_inputs, spec.open_outputs) == (False, False, False)
    assert spec.doc.startswith("Square it.")


def test_R036_a_generator_with_two_parameters_has_two_inputs() -> None:
    """N parameters are N inputs, each an iterator."""

    def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
        yield ""

    spec = read(repeat)
    assert (spec.style, names_of(spec.inputs), types_of(spec)) == (Style.STREAMING, ["words", "counts"], [str, int])
    assert not any(stream.single for stream in spec.inputs)


def test_R036_an_async_generator_is_async() -> None:
    """Its inputs and outputs are async iterators."""
    spec = read(chat)
    assert (spec.is_async, spec.style, types_of(spec)) == (True, Style.STREAMING, [str])


def test_R037_a_generator_without_parameters_is_a_source() -> None:
    """No inputs, one output."""
    spec = read(ticks)
    assert (spec.inputs, names_of(spec.outputs), spec.style) == ((), ["out"], Style.STREAMING)


@pytest.mark.parametrize(
    ("fn", "names", "types"),
    [(split, ["even", "odd"], [int, str]), (pair, ["out0", "out1"], [int, str])],
)
def test_R039_a_tuple_of_iterators_declares_the_outputs(fn: Any, names: list[str], types: list[Any]) -> None:
    """The annotation gives arity, names and types."""
    spec = read(fn)
    assert (names_of(spec.outputs), [stream.type for stream in spec.outputs]) == (names, types)
    assert spec.call.result is ResultShape.SEVERAL


@pytest.mark.parametrize("fn", [tag, maybe_tag, several])
def test_R039_tagged_values_leave_the_number_of_outputs_to_the_caller(fn: Any) -> None:
    """Iterator[Output] and tuple[Iterator, ...] are open."""
    spec = read(fn)
    assert (spec.open_outputs, spec.outputs) == (True, ())


def test_R039_the_decorator_fixes_the_number_of_outputs() -> None:
    """Named outputs are known outputs."""

    @function(outputs=("good", "bad"))
    def route(xs: Iterator[str]) -> Iterator[Output]:
        yield Output("bad", 1)

    spec = read(route)
    assert (spec.open_outputs, names_of(spec.outputs)) == (False, ["good", "bad"])


def test_R039_an_unannotated_generator_that_mentions_output_is_open() -> None:
    """Only who names Output can tag."""

    def tagging(xs):  # type: ignore[no-untyped-def]
        yield Output(1, 2)

    def plain(xs):  # type: ignore[no-untyped-def]
        yield 1

    assert read(tagging).open_outputs
    assert (read(plain).open_outputs, len(read(plain).outputs)) == (False, 1)


def test_R040_annotations_choose_payload_message_or_headers() -> None:
    """Three variants by annotation; headers need no payload."""

    def one(payload: dict[str, int], message: Message[str], headers: Headers) -> int:
        return 1

    spec = read(one)
    assert [stream.take for stream in spec.inputs] == [Take.PAYLOAD, Take.MESSAGE, Take.HEADERS]
    assert types_of(spec) == [dict[str, int], str, IGNORED]


@pytest.mark.parametrize(
    ("choice", "take"), [("payload", Take.PAYLOAD), ("message", Take.MESSAGE), ("headers", Take.HEADERS)]
)
def test_R040_the_decorator_chooses_too(choice: str, take: Take) -> None:
    """Three variants by decorator."""
    spec = read(function(argument_type=choice)(lambda x: x))
    assert spec.inputs[0].take is take


def test_R043_interaction_model_stream_makes_a_plain_function_stream() -> None:
    """The module says so for functions that say nothing themselves."""
    namespace: dict[str, Any] = {"interaction_model": "stream"}
    exec("def relay(xs):\n    return map(str, xs)\ndef one(x: int) -> int:\n    return x", namespace)
    spec = read(namespace["relay"])
    assert (spec.style, spec.inputs[0].single, spec.call.result) == (Style.STREAMING, False, ResultShape.UNKNOWN)
    assert read(namespace["one"]).style is Style.REQUEST_REPLY


def test_R037_R043_a_plain_function_without_parameters_is_a_source_there() -> None:
    """As in riff's python invoker; one that says that it gives a value gives one for each message."""
    namespace: dict[str, Any] = {"interaction_model": "stream"}
    exec("def source():\n    return (x for x in 'ab')\ndef one() -> int:\n    return 1", namespace)
    spec = read(namespace["source"])
    assert (spec.style, spec.inputs, spec.call.result) == (Style.STREAMING, (), ResultShape.UNKNOWN)
    assert read(namespace["one"]).style is Style.REQUEST_REPLY
    assert Harness(namespace["source"]).run() == ["a", "b"]


def test_R035_concurrency_is_for_async_request_reply_only() -> None:
    """Anything else is refused with the fix."""

    async def fetch(x: str) -> str:
        return x

    assert read(function(concurrency=3)(fetch)).concurrency == 3
    with pytest.raises(SpecError, match=r"needs an async function.*async def square"):
        read(function(concurrency=2)(functools.partial(square)))
    with pytest.raises(SpecError, match="streams; drop concurrency="):
        read(function(concurrency=2)(functools.partial(chat)))


def test_R022_a_hook_that_is_not_callable_is_refused_naming_its_type() -> None:
    """The decorator and the attribute alike."""
    with pytest.raises(HookError, match=r"the init hook of 'f' is of type list, which cannot be called"):
        read(function(name="f", init=[1])(lambda x: x))  # type: ignore[call-overload]

    def with_attribute(x: int) -> int:
        return x

    with_attribute.destroy = 5  # type: ignore[attr-defined]
    with pytest.raises(HookError, match="destroy hook of 'with_attribute' is of type int"):
        read(with_attribute)


def test_hooks_may_be_attributes_of_the_function() -> None:
    """``fn.init = load`` is enough."""

    def fn(x: int) -> int:
        return x

    fn.init = square  # type: ignore[attr-defined]
    assert read(fn).hooks.init is square


def test_aggregators_and_sinks() -> None:
    """A value or nothing may follow a stream."""
    assert (read(total).call.result, len(read(total).outputs)) == (ResultShape.VALUE, 1)
    assert (read(store).call.result, read(store).outputs) == (ResultShape.NOTHING, ())


def test_strings_optionals_and_annotated_are_seen_through() -> None:
    """Names imported under TYPE_CHECKING only are found when they are well known."""

    def fn(xs: Annotated[Iterator[int], "doc"], k: Optional[int]) -> Generator[int, None, None]:  # noqa: UP045
        yield 1

    spec = read(fn)
    assert types_of(spec) == [int, Optional[int]]  # noqa: UP045
    assert spec.outputs[0].type is int


def test_an_optional_stream_is_a_stream() -> None:
    """A caller always sends a stream, so None cannot come."""

    def fn(xs: Iterator[int] | None) -> Iterable[int]:
        return xs or ()

    assert types_of(read(fn)) == [int]


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    """What exists only for the type checker has to be imported."""

    def price(x: Decimal) -> int:
        return 1

    with pytest.raises(SpecError, match=r"'Decimal' of parameter 'x' of 'price'.*import that name at run time"):
        read(price)


def test_coroutine_functions_may_return_async_iterators() -> None:
    """The coroutine is awaited, then its iterator is read."""

    async def opened(xs: AsyncIterator[int]) -> AsyncIterator[str]:
        raise NotImplementedError

    def passed(xs: AsyncIterator[int]) -> AsyncIterator[str]:
        raise NotImplementedError

    def promised(x: int) -> Awaitable[str]:
        raise NotImplementedError

    assert [read(fn).is_async for fn in (opened, passed, promised)] == [True, True, True]
    assert [read(fn).outputs[0].type for fn in (opened, passed, promised)] == [str, str, str]
    assert read(promised).style is Style.REQUEST_REPLY


def test_callables_of_every_make_are_looked_through() -> None:
    """Instances, classes, partials, methods, wrapped functions, lambdas, builtins."""

    @functools.wraps(mean)
    def wrapped(*args: Any) -> Any:
        return mean(*args)

    two = functools.partial(lambda a, b: a, b=1)
    for fn in (Model, Model(), Model().__call__):
        assert (names_of(read(fn).inputs), types_of(read(fn))) == (["image"], [bytes])
    assert (read(Model).name, read(Model).call.make, read(Model()).call.make) == ("Model", True, False)
    assert (read(wrapped).style, types_of(read(wrapped))) == (Style.STREAMING, [float])
    assert names_of(read(two).inputs) == ["a"]
    assert len(read(len).inputs) == len(read(max).inputs) == 1


def generator_of_value(xs: Iterator[int]) -> int:  # type: ignore[misc]
    yield 1


def generator_of_none() -> None:  # type: ignore[misc]
    yield 1


async def async_generator_of_iterator() -> Iterator[int]:  # type: ignore[misc]
    yield 1


def sync_generator_of_async() -> AsyncIterator[int]:  # type: ignore[misc]
    yield 1


def sync_generator_with_async_input(xs: AsyncIterator[int]) -> Iterator[int]:
    yield 1


async def async_with_sync_input(xs: Iterator[int]) -> int:
    return 1


async def async_returns_sync(xs: AsyncIterator[int]) -> Iterator[int]:
    return iter([1])


def required_keyword(x: int, *, key: str) -> int:
    return x


def mixed_tuple(xs: Iterator[int]) -> tuple[Iterator[int], int]:
    return xs, 1


class NeedsArguments:
    def __init__(self, path: str) -> None: ...

    def __call__(self, x: int) -> int:
        return x


class NotCallable: ...


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (generator_of_value, r"annotated to return int, but its body yields.*annotate Iterator\[int\]"),
        (generator_of_none, r"annotated to return None, but its body yields"),
        (async_generator_of_iterator, r"is annotated to return Iterator\[int\].*write AsyncIterator\[int\]"),
        (sync_generator_of_async, r"sync generator annotated to return AsyncIterator\[int\].*annotate Iterator\[int\]"),
        (sync_generator_with_async_input, r"a sync generator cannot read it; write `async def"),
        (async_with_sync_input, r"parameter 'xs' of the async function.*write AsyncIterator\[int\]"),
        (async_returns_sync, r"annotated to return Iterator\[int\].*write AsyncIterator\[int\]"),
        (required_keyword, r"keyword-only parameter 'key'.*give it a default"),
        (mixed_tuple, r"mixes iterators and values: 'out1' is int"),
        (NeedsArguments, r"constructor needs arguments.*make an instance"),
        (NotCallable, r"class without __call__"),
        (functools.partial(square, y=1), r"binds 'y', which its function does not take"),
        (functools.partial(square, 1, 2), r"binds 2 arguments, but its function takes only 1"),
        (
            function(style="request/reply")(functools.partial(mean)),
            r"declared request/reply, but its parameter 'xs' is Itera",
        ),
        (function(inputs=("a", "b"))(functools.partial(square)), r"names 2 inputs, but 'square' has 1"),
        (function(outputs=("a", "b"))(functools.partial(square)), r"names 2 outputs, but 'square' has 1"),
        (function(inputs=("k",))(functools.partial(topk)), r"leaves out its parameter 'items'"),
        (function(input_types={"y": "a/b"})(functools.partial(square)), r"names 'y', which it does not have"),
        (function(input_types="nonsense")(functools.partial(square)), r"'nonsense', which is not a media type"),
    ],
)
def test_what_is_not_understood_is_told_in_one_sentence_with_the_fix(fn: Callable[..., Any], text: str) -> None:
    """Each mistake has its own text."""
    with pytest.raises(SpecError, match=text) as caught:
        read(fn)
    assert "\n" not in caught.value.detail
