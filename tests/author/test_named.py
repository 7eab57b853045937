"""Which inputs a function has once a caller has named them."""

import functools
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import Context, function
from invoker.author.binding import Binder
from invoker.author.lift import lift
from invoker.author.named import bind, bind_options
from invoker.author.reader import read
from invoker.author.spec import Style
from invoker.errors import ProtocolViolation
from tests.bodies import run


def fill(text: str, count: int = 2, *, sep: str = " ") -> str:
    return sep.join([text] * count)


def generate(prompt: Iterator[str], ctx: Context, top: int = 3, seeds: Iterator[int] = ()) -> Iterator[str]:
    yield f"{list(prompt)} {top} {list(seeds)}"


def anything(text: str = "none", **more):
    return f"{text} {more}"


def positional(a, b=2, c=3, /):
    return [a, b, c]


def clock() -> str:
    return "now"


async def aclock() -> str:
    return "now"


def ticks() -> Iterator[int]:
    yield from range(3)


def total(*xs: int) -> int:
    return sum(xs)


async def invoke(fn, names, *inputs):
    return await run(lift(fn, read(fn)).binding(names), *inputs)


async def test_E077_a_parameter_with_a_default_may_be_an_input_or_keep_it():
    """Whichever are named get the inputs in the order of the names."""
    assert await invoke(fill, ("text",), ["a"]) == [["a a"]]
    assert await invoke(fill, ("count", "text"), [1, 3], ["a", "b"]) == [["a", "b b b"]]
    assert await invoke(fill, ("sep", "text"), ["-"], ["a"]) == [["a-a"]]
    assert await invoke(fill, ("text", "count", "sep"), ["a"], [3], ["-"]) == [["a-a-a"]]


async def test_E092_optional_inputs_of_a_streaming_function_are_as_annotated():
    """A value is read once, a stream is handed on."""
    assert await invoke(generate, ("prompt", "top"), ["x", "y"], [9]) == [["['x', 'y'] 9 []"]]
    assert await invoke(generate, ("seeds", "prompt"), [1, 2], ["x"]) == [["['x'] 3 [1, 2]"]]


async def test_a_value_function_that_is_given_a_stream_is_called_once():
    """It then takes the first of its other inputs."""

    def take(text: str, more: Iterator[int] = ()) -> str:
        return f"{text} {list(more)}"

    assert await invoke(take, ("text",), ["a", "b"]) == [["a []", "b []"]]
    bound = bind(Binder(read(take)), ("text", "more"))
    assert bound.style is Style.STREAMING
    assert [one.single for one in bound.inputs] == [True, False]
    assert await invoke(take, ("text", "more"), ["a"], [1, 2]) == [["a [1, 2]"]]


async def test_E076_a_function_with_open_names_takes_any_name():
    """What is no parameter arrives by keyword."""
    assert read(anything).open_names
    assert not read(fill).open_names
    assert await invoke(anything, ("b", "text", "a"), [1], ["t"], [2]) == [["t {'b': 1, 'a': 2}"]]
    assert await invoke(anything, ("a b",), ["odd"]) == [["none {'a b': 'odd'}"]]

    def streams(**files: Iterator[str]) -> str:
        return str({name: list(file) for name, file in files.items()})

    assert await invoke(streams, ("x", "y"), ["1", "2"], ["3"]) == [["{'x': ['1', '2'], 'y': ['3']}"]]


@pytest.mark.parametrize("fn", [clock, aclock])
async def test_a_function_that_is_bound_to_nothing_runs_once(fn):
    """No input says how often it is called."""
    assert await invoke(fn, ()) == [["now"]]
    assert await invoke(anything, ()) == [["none {}"]]
    assert await invoke(ticks, ()) == [[0, 1, 2]]
    assert await invoke(fn, ("in",), [1, 2]) == [["now", "now"]]


async def test_variadic_and_positional_parameters_bind_by_their_name():
    """``*args`` is one optional input; a positional parameter needs those before it."""
    assert await invoke(total, ("xs",), [1, 2]) == [[1, 2]]
    assert await invoke(total, ()) == [[0]]
    assert await invoke(positional, ("b", "a"), [7], [1]) == [[[1, 7, 3]]]
    with pytest.raises(ProtocolViolation, match="'positional' cannot be given its input 'c' without 'b'"):
        bind(Binder(read(positional)), ("a", "c"))


async def test_what_a_partial_binds_is_an_optional_input():
    """By keyword, so that the partial's own value gives way."""

    def three(a, b, c):
        return [a, b, c]

    partial = functools.partial(three, b=2)
    assert await invoke(partial, ("a", "c"), [1], [3]) == [[[1, 2, 3]]]
    assert await invoke(partial, ("c", "b", "a"), [3], [9], [1]) == [[[1, 9, 3]]]


async def test_names_given_by_the_decorator_are_the_names_that_bind():
    """New names replace the parameters'; a parameter with a default that it makes an input may still be left out."""

    @function(inputs=("text",))
    def renamed(x, **more):
        return [x, more]

    assert await invoke(renamed, ("text", "y"), [1], [2]) == [[[1, {"y": 2}]]]
    with pytest.raises(ProtocolViolation, match="'renamed' has no input 'x'; it has text"):
        bind(Binder(read(renamed)), ("text", "x"))

    @function(inputs=("n", "x"))
    def named(x, n=5):
        return [x, n]

    assert [one.name for one in read(named).required] == ["x"]
    assert await invoke(named, ("x",), [1]) == [[[1, 5]]]
    assert await invoke(named, ("n", "x"), [2], [1]) == [[[1, 2]]]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("text", "cuont"), "'fill' has no input 'cuont'; did you mean 'count'?"),
        (("text", "zzz"), "'fill' has no input 'zzz'; it has text, count, sep"),
        (("count",), "'fill' needs its input 'text', which is not given"),
        (("text", "text"), "'fill' is given its input 'text' twice"),
    ],
)
def test_E076_E077_wrong_names_are_refused_in_a_sentence(names, text):
    """It names the function, the input, and what there is."""
    with pytest.raises(ProtocolViolation) as refused:
        bind(Binder(read(fill)), names)
    assert text in str(refused.value)
    with pytest.raises(ProtocolViolation, match="it has none"):
        bind(Binder(read(ticks)), ("x",))


def test_the_context_is_no_input():
    """Nor may a caller with open names slip something in its place."""

    def seen(ctx: Context, **more):
        return more

    assert read(seen).optional == ()
    with pytest.raises(ProtocolViolation, match="has no input 'ctx'"):
        bind(Binder(read(seen)), ("ctx",))


def test_a_stream_that_the_function_cannot_read_is_no_optional_input():
    """A sync function cannot read an async iterator, nor the other way round."""

    def sync(x: int, y: AsyncIterator[int] | None = None) -> int: ...
    async def asynchronous(x: int, y: Iterator[int] = ()) -> int: ...

    assert read(sync).optional == read(asynchronous).optional == ()


def test_optional_inputs_are_described_like_the_others():
    """With their types; those of the decorator's mapping may name them, too."""

    @function(input_types={"mask": "image/png"})
    def cut(image: bytes, mask: bytes = b"", n: int = 1) -> bytes: ...

    spec = read(cut)
    assert [(one.name, one.type, one.media_types) for one in spec.optional] == [
        ("mask", bytes, ("image/png",)),
        ("n", int, ()),
    ]
    assert [one.name for one in spec.required] == ["image"]
    assert bind(Binder(spec), ("mask", "image")).inputs[0].media_types == ("image/png",)


def test_bindings_are_kept_but_not_without_bound():
    """Peers choose names, so what they name must not fill the memory; a function's own inputs need no binding."""
    made = lift(anything, read(anything))
    first = made.binding(("a",))
    assert made.binding(("a",)) is first
    assert first.hooks is made.hooks
    for index in range(1000):
        made.binding((f"n{index}",))
    assert len(made._bindings) <= 256
    kept = len(made._bindings)
    assert len(made.binding(tuple(f"m{index}" for index in range(101))).spec.inputs) == 101
    assert len(made._bindings) == kept
    own = lift(generate, read(generate))
    assert own.binding(("prompt",)) is own


def test_R165_names_of_options_follow_the_labels():
    """Between R and R+O of them; without names all options may come, but no streams, which have no first value."""
    binder = Binder(read(generate))
    assert [(one.name, one.single, one.is_option) for one in bind_options(binder, ("in", "top")).inputs] == [
        ("prompt", False, False),
        ("top", True, True),
    ]
    assert [one.name for one in bind_options(binder, ()).inputs] == ["prompt", "top"]
    announced = bind_options(binder, ("in", "seeds", "top")).inputs
    assert [(one.name, one.single, one.is_option) for one in announced] == [
        ("prompt", False, False),
        ("seeds", False, False),
        ("top", True, True),
    ]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("in", "seed"), "has no input 'seed'; did you mean 'seeds'?"),
        (("in", "prompt"), "'generate' is given its input 'prompt' twice"),
        (("in", "top", "top"), "'generate' is given its input 'top' twice"),
        (
            ("in", "top", "seeds", "x"),
            "has no input 'x'; it has prompt, top, seeds; expected 1 to 3 inputNames, got 4",
        ),
    ],
)
def test_R165_other_names_are_violations(names, text):
    """The text names what there is."""
    with pytest.raises(ProtocolViolation, match=text):
        bind_options(Binder(read(generate)), names)


def test_R055_too_few_names_tell_both_numbers():
    """A required input cannot be left out."""

    def both(a: int, b: int, c: int = 0) -> int: ...

    with pytest.raises(
        ProtocolViolation, match="needs its input 'b', which is not given; expected 2 to 3 inputNames, got 1"
    ):
        bind_options(Binder(read(both)), ("in",))


def test_what_the_decorator_makes_of_args_can_be_bound_behind_a_default():
    """An option that is given is passed by position, if others follow that can be passed so only."""

    @function(inputs=("n", "left", "right"))
    def joined(n=1, *xs):
        return [n, *xs]

    (spec,) = [bind(Binder(read(joined)), ("n", "left", "right"))]
    assert [one.keyword for one in spec.call.slots] == ["", "", ""]
