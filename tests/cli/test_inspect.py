"""``python -m invoker inspect``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from invoker.cli.inspect import add_arguments, run
from tests.forget import forget
from tests.protocols.web.openapi.made import CATALOGUE, catalogue

SAMPLE = '''
import time
from collections.abc import Iterator, AsyncIterator
from typing import NamedTuple
from invoker import Context, Headers, Message, Output, function
from invoker.protocols import evergreen

class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]

def load(): ...

@function(init=load, hook_timeout_s=3, output_types={"odd": "image/png"})
def split(xs: Iterator[Message[int]], k: int, hs: Iterator[Headers], ctx: Context) -> Split:
    """Split it.

    At length.
    """

@function(concurrency=4, timeout_s=1.5, max_calls=2, calls_per_minute=60, memory_bytes=1000)
async def slow(x: str) -> str:
    time.sleep(1)
    return x

@function
def tag(*xs: Iterator[int]) -> Iterator[Output]:
    yield Output(0, 1)

@function
def ticks() -> Iterator[int]:
    yield 1

@function
def store(xs: Iterator[int]) -> None: ...

@function(options=[evergreen.Nodes(sequence=True, retain=False)])
def fill(text: str, count: int = 2, *, stops: Iterator[str] = (), ctx: Context, **more: bytes) -> str: ...

@function
class Model:
    def __enter__(self): ...
    def __exit__(self, *exc): ...
    def __call__(self, x: bytes) -> str: ...
'''


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module with functions of many shapes in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    path = tmp_path / "inspected.py"
    path.write_text(
        SAMPLE.replace(
            '    """\n\n@function(concurrency', '    """\n    return Split(iter([]), iter([]))\n\n@function(concurrency'
        )
    )
    yield path
    forget(tmp_path, before)


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command; its exit code, stdout and stderr."""

    def call(*argv: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        code = run(parser.parse_args(argv))
        out, err = capsys.readouterr()
        return code, out, err

    return call


Inspect = Callable[..., tuple[int, str, str]]


@pytest.mark.usefixtures("sample")
def test_text_says_how_the_function_was_understood(inspect: Inspect) -> None:
    """Inputs, outputs, types, media types, style, hooks."""
    code, out, err = inspect("inspected:split")
    assert (code, err) == (0, "")
    assert out == (
        "split  (inspected:split)\n"
        "  Split it.\n"
        "  style     streaming: called once an invocation; sync, in a thread of its own\n"
        "  input 0   xs: Message[int]  [any codec]\n"
        "  input 1   k: int, one value  [any codec]\n"
        "  input 2   hs: Headers  [any codec]\n"
        "  output 0  even: int  [any codec]\n"
        "  output 1  odd: int  [image/png]\n"
        "  action    split(xs: int, k: int, hs: any) -> even: int, odd: image/png\n"
        "  init      load, at most 3 s\n"
    )


@pytest.mark.usefixtures("sample")
def test_E075_R164_options_are_shown(inspect: Inspect) -> None:
    """Parameters with a default, and whether any name will do; in text and as JSON."""
    assert inspect("inspected:fill") == (
        0,
        (
            "fill  (inspected:fill)\n"
            "  style     request/reply: called once an item; sync, in a thread of its own\n"
            "  input 0   text: str  [any codec]\n"
            "  option    count: int  [any codec]; default 2\n"
            "  option    stops: str  [any codec]; default ()\n"
            "  **        any other input that the caller names\n"
            "  output 0  out: str  [any codec]\n"
            "  action    fill(text: text/plain, count?: int, stops?: text/plain, ...) -> out: text/plain\n"
            "  with      evergreen.Nodes(sequence=True, retain=False)\n"
        ),
        "",
    )
    (fill,) = json.loads(inspect("inspected:fill", "--json")[1])["functions"]
    options = [("count", "int", "2"), ("stops", "str", "()")]
    assert [(one["name"], one["type"], one["default"]) for one in fill["optional"]] == options
    assert fill["open_names"]
    assert (fill["outputs"][0]["sequence"], fill["outputs"][0]["retain"]) == (True, False)
    (ticks,) = json.loads(inspect("inspected:ticks", "--json")[1])["functions"]
    assert (ticks["optional"], ticks["open_names"]) == ([], False)


@pytest.mark.usefixtures("sample")
def test_a_catalogue_shows_every_function(inspect: Inspect) -> None:
    """Sources, sinks, open arity, warnings, context managers."""
    code, out, _ = inspect("inspected")
    assert code == 0
    for text in (
        "style        request/reply: called once an item; async, on the event loop",
        "streaming: called once an invocation; sync, in the thread that reads a short HTTP request; otherwise in ",
        "concurrency  4 calls of an invocation may overlap; results keep their order",
        "warning      ",
        "'time.sleep(...)' blocks the event loop",
        "input 0+  xs: int  [any codec]; as many as the caller sends",
        "output    as many as the caller asks for, by Output(index or name, value)",
        "input     none: it is a source",
        "output   none: it is a sink",
        "made      the class is instantiated once, at start",
        "with      entered once at start, left after the last invocation",
    ):
        assert text in out


@pytest.mark.usefixtures("sample")
def test_T032_limits_are_shown(inspect: Inspect) -> None:
    """Where the author said some."""
    _, out, _ = inspect("inspected:slow")
    row = "  limits       an invocation ends after 1.5 s; 2 at once; 60 of one party in 60 s; 1000 bytes of memory\n"
    assert row in out
    assert "limits" not in inspect("inspected:split")[1]


@pytest.mark.usefixtures("sample")
def test_json_says_the_same(inspect: Inspect) -> None:
    """One object, for programs."""
    code, out, _ = inspect("inspected", "--json")
    said = json.loads(out)
    assert (code, said["error"], said["entrypoint"]) == (0, None, "inspected")
    split, slow, *_, model = said["functions"]
    assert split["inputs"][0] == {
        "index": 0, "name": "xs", "type": "int", "take": "message", "single": False, "media_types": [],
    }  # fmt: skip
    assert [one["name"] for one in split["outputs"]] == ["even", "odd"]
    assert (split["hooks"]["init"], split["hooks"]["timeout_s"]) == ("load", 3)
    assert (slow["async"], slow["concurrency"], len(slow["warnings"])) == (True, 4, 1)
    assert slow["limits"] == {
        "timeout_s": 1.5, "max_calls": 2, "calls_per_minute": 60, "memory_bytes": 1000, "isolation": "",
    }  # fmt: skip
    assert split["action"]["description"].startswith("Split it.")
    assert [one["type"] for one in split["action"]["outputs"]] == ["int", "image/png"]
    assert (model["hooks"]["instantiated"], model["hooks"]["context_manager"]) == (True, True)


@pytest.mark.usefixtures("sample")
def test_what_was_not_understood_is_said_precisely(inspect: Inspect) -> None:
    """One sentence on stderr, exit code 1; also in JSON."""
    code, out, err = inspect("inspected:splti")
    assert (code, out, err) == (1, "", "invoker: 'inspected' has no 'splti'; did you mean 'split'?\n")
    code, out, _ = inspect("inspected:splti", "--json")
    assert json.loads(out)["error"] == "'inspected' has no 'splti'; did you mean 'split'?"


def test_R117_a_traceback_is_shown_only_with_debug(inspect: Inspect, sample: Path) -> None:
    """One line without, everything with."""
    sample.write_text("def go():\n  raise ValueError('boom')\ngo()")
    code, _, err = inspect("inspected:fn")
    assert (code, err.count("\n")) == (1, 1)
    assert "raised ValueError: boom at inspected.py:2" in err
    assert "Traceback" in inspect("inspected:fn", "--debug")[2]


TRAITS = "other types of the same kind are cast; is given the names of wanted outputs"

MODELS = """
from typing import Annotated, NamedTuple
import numpy as np
from numpy.typing import NDArray
from invoker import Tensor, function
from invoker.protocols import graphpipe

__version__ = "3"
Rows = Annotated[NDArray[np.float32], ("n", 4), "flowers"]

class Found(NamedTuple):
    scores: Rows
    best: NDArray[np.int64]

@function(version="1.2", batch_max=8, batch_wait_ms=2.5, options=[graphpipe.Casting(inputs="same_kind")])
def find(x: Rows, output_names: list[str]) -> Found: ...

@function(inputs={"x": Tensor()}, options=[graphpipe.Rows()])
def double(x): return x

@function
def wrong(x: Annotated[NDArray[np.float32], (-3,)]) -> int: ...

@function
def plain(x: int) -> int: ...
"""


@pytest.mark.usefixtures("sample")
def test_G087_a_function_of_arrays_is_shown_as_a_model(inspect: Inspect) -> None:
    """With types, shapes, names, and how it is fed."""
    Path("modelled.py").write_text(MODELS)
    code, out, _ = inspect("modelled:find")
    assert code == 0
    assert out.partition("  model  ")[2].splitlines() == [
        f"   version 1.2; up to 8 rows of requests are joined, 2.5 ms; {TRAITS}",
        "    input   x: Float32 [-1, 4]  flowers [n, 4]",
        "    output  scores: Float32 [-1, 4]  flowers [n, 4]",
        "    output  best: Int64",
        "  with      graphpipe.Casting(inputs='same_kind', outputs='no')",
    ]
    assert "input 0   x: NDArray[float32]  [any codec]" in out
    assert "version 3; fed row by row; nothing is cast\n    input   x: any type" in inspect("modelled:double")[1]
    assert "model" not in inspect("modelled:plain")[1].replace("modelled", "")


@pytest.mark.usefixtures("sample")
def test_G087_json_says_what_the_model_is(inspect: Inspect) -> None:
    """As a GET of the model does, and how it is fed; null for others."""
    Path("modelled.py").write_text(MODELS)
    (find,) = json.loads(inspect("modelled:find", "--json")[1])["functions"]
    model = find["model"]
    assert [one["TypeName"] for one in (*model["inputs"], *model["outputs"])] == ["Float32", "Float32", "Int64"]
    assert (model["version"], model["batch_max"], model["batch_wait_ms"]) == ("1.2", 8, 2.5)
    assert (model["rows"], model["casting"]) == (False, "same_kind")
    assert find["options"] == {"graphpipe.Casting": {"inputs": "same_kind", "outputs": "no"}}
    (plain,) = json.loads(inspect("modelled:plain", "--json")[1])["functions"]
    assert plain["model"] is None


@pytest.mark.usefixtures("sample")
def test_a_shape_that_is_none_is_said_in_one_sentence(inspect: Inspect) -> None:
    """As serving would end with."""
    Path("modelled.py").write_text(MODELS)
    code, out, err = inspect("modelled:wrong")
    assert (code, out) == (1, "")
    assert err.startswith("invoker: input 'x' of 'wrong' declares a size -3")


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_reader_that_goes_away_ends_it_quietly(sample: Path, flags: tuple[str, ...]) -> None:
    """As with `| head -1`: no traceback, and the exit code of a broken pipe."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "invoker", "inspect", "inspected", *flags],
            cwd=sample.parent,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=writes,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writes)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_H067_the_openapi_document_can_be_had_without_serving(capsys: pytest.CaptureFixture[str]) -> None:
    """It is what `/openapi.json` gives, as JSON with or without ``--json``."""
    for flags in (["--openapi"], ["--openapi", "--json"]):
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        assert run(parser.parse_args([CATALOGUE, *flags])) == 0
        shown = json.loads(capsys.readouterr().out)
        ours = catalogue()
        assert shown["paths"].keys() == ours["paths"].keys()
        assert shown["paths"]["/square"] == ours["paths"]["/square"]
