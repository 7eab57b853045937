"""The ready line: never silenced, and its call fits."""

from __future__ import annotations

import io
import json
import logging
import shlex
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.cli import main
from invoker.ops.logs import set_up
from invoker.ops.ready import announce, sample_arguments
from invoker.prepare import prepare, prepare_function
from invoker.testing import TestServer


class Person(TypedDict):
    """An input with fields."""

    name: str


class Place(NamedTuple):
    """An input with fields that is a tuple."""

    x: int


@pytest.fixture
def root_logger() -> Iterator[None]:
    """The logging of this process as it was."""
    root, ours = logging.getLogger(), logging.getLogger("invoker")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.usefixtures("root_logger")
@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_R016_the_line_is_printed_once_at_every_level(level: str) -> None:
    """In both formats, as INFO."""
    for style in ("json", "text"):
        stream = io.StringIO()
        set_up(level, style, stream=stream)
        announce("ready: 100% of it")
        [line] = stream.getvalue().splitlines()
        if style == "json":
            found = json.loads(line)
            assert (found["level"], found["message"]) == ("info", "ready: 100% of it")
        else:
            assert line.endswith("INFO    ready: 100% of it")


@pytest.mark.parametrize(
    ("type_", "arguments"),
    [
        (int, "--data 7"), (float, "--data 7"), (int | None, "--data 7"), (Any, "--data 7"), (object, "--data 7"),
        (str, "--data hello"), (bytes, "--data hello"), (str | int, "--data hello"), (bool, "--data true"),
        (dict[str, int], "--json --data '{}'"), (Person, "--json --data '{}'"), (list[int], "--json --data '[]'"),
        (tuple[int, ...], "--json --data '[]'"), (Iterator[int], "--data 7"), (Iterator[str], "--data hello"),
    ],
)  # fmt: skip
def test_R005_the_value_fits_the_input(type_: Any, arguments: str) -> None:
    """By its annotation."""

    def fn(x: Any) -> Any:
        return x

    fn.__annotations__["x"] = type_
    assert sample_arguments(prepare_function(fn).function.spec) == arguments


@pytest.mark.parametrize(
    ("entrypoint", "arguments"),
    [
        ("functions.ticks:ticks", "--no-input"),
        ("functions.add:add", "--data 7 --arg 1=7"),
        ("functions.repeat:repeat", "--data hello --arg 1=7"),
        ("functions.split:split", "--data 7 --outputs even,odd"),
        ("functions.store:store", "--json --data '{}' --outputs ''"),
    ],
)
def test_R005_every_input_and_output_is_asked_for(entrypoint: str, arguments: str) -> None:
    """None, one or several of each."""
    assert sample_arguments(prepare(entrypoint)[0].function.spec) == arguments


def test_R005_a_string_beside_a_list_is_json() -> None:
    """One media type serves all inputs."""

    def fn(names: list[str], suffix: str) -> list[str]:
        return [name + suffix for name in names]

    assert sample_arguments(prepare_function(fn).function.spec) == """--json --data '[]' --arg '1="hello"'"""


@pytest.mark.timeout(30)
@pytest.mark.parametrize("entrypoint", ["functions.ticks:ticks", "functions.split:split", "functions.chat:chat"])
def test_R005_R016_the_call_of_the_ready_line_succeeds(entrypoint: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It is found although only errors are logged, and copied as it stands."""
    server = TestServer(entrypoint, "--log-level", "error", "--no-http")
    try:
        line = json.loads(server.log())["message"]
        command = shlex.split(line.partition("try: ")[2])
        assert command[:4] == ["python", "-m", "invoker", "call"]
        assert main(command[3:]) == 0
        assert capfd.readouterr().out
    finally:
        assert server.close() == 0


@pytest.mark.parametrize(
    ("type_", "arguments"),
    [
        (NDArray[np.float32], "[0]"),
        (Annotated[NDArray[np.float32], ("n", None, 2)], "[[[0, 0]]]"),
        (Annotated[NDArray[np.float32], ()], "0"),
        (Annotated[NDArray[np.float32], (28, 28)], "[]"),
        (Annotated[NDArray[np.float32], (0, 2)], "[]"),
        (Annotated[NDArray[np.str_], (2,)], '["hello", "hello"]'),
        (np.ndarray, "[0]"),
    ],
)
def test_R005_arrays_are_lists_of_their_shape(type_: Any, arguments: str) -> None:
    """A small one, where any size is taken."""

    def fn(x: Any) -> Any:
        return x

    fn.__annotations__["x"] = type_
    assert shlex.split(sample_arguments(prepare_function(fn).function.spec))[-1] == arguments
