"""From functions, or what names them, to a server."""

from __future__ import annotations

import types

import pytest

import functions.square
from invoker import function
from invoker.errors import ConfigError, LoadError, SpecError
from invoker.server.building import build, loop_factory
from invoker.server.table import TABLE


def config(**more):
    return TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, **more)


def names(*what, **more) -> list[str]:
    return [one.spec.name for one in build(config(**more), *what).engine.catalog]


class Model:
    def __call__(self, x: int) -> int:
        return x


def test_functions_come_as_objects_modules_and_entrypoints():
    """In the order in which they are given."""

    def local(x: int) -> int:
        return x

    @function(name="first")
    def decorated(x: int) -> int:
        return x

    catalogue = types.ModuleType("catalogue")
    catalogue.one = decorated
    assert names("functions.repeat:repeat", functions.square, local, Model, lambda x: x, catalogue) == [
        "repeat", "square", "local", "Model", "lambda", "first",
    ]  # fmt: skip


def test_two_functions_of_one_name_are_refused():
    """The text says what to do."""
    with pytest.raises(SpecError, match=r"two functions are named 'lambda'; give one of them another @function\(name"):
        names(lambda x: x, lambda x: x)


def test_a_module_without_functions_is_refused():
    """As it is on the command line."""
    with pytest.raises(LoadError, match="'empty' defines no public function"):
        names(types.ModuleType("empty"))


def test_R010_what_is_loaded_anew_has_to_have_a_name():
    """A function that is at hand cannot be loaded."""
    assert names("functions.square:square", reload_per_invocation=True) == ["square"]
    with pytest.raises(ConfigError, match="name the function, as 'module:function'"):
        names(functions.square.square, reload_per_invocation=True)


def test_the_loop_is_the_one_that_suits_the_server():
    """Only async functions on the gRPC transport want one of ours."""

    async def later(x: int) -> int:
        return x

    assert loop_factory(build(config(loop="asyncio"), "functions.square:square")).__name__ == "QueuePollingLoop"
    assert loop_factory(build(config(loop="asyncio", protocols=("riff",)), "functions.square:square")) is None
    assert loop_factory(build(config(loop="asyncio", protocols=("riff",)), later)).__name__ == "QueuePollingLoop"
