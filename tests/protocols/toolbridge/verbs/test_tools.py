"""``python -m invoker inspect --tools``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Annotated

import pytest

from invoker import Field, function
from invoker.author.reader import read
from invoker.cli.inspect import add_arguments, run
from invoker.protocols import toolbridge
from invoker.protocols.toolbridge.verbs.tools import described_tools, tools_text

Inspect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Inspect:
    """Run the command; its exit code, stdout and stderr."""

    def call(*argv: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        code = run(parser.parse_args(argv))
        return code, *capsys.readouterr()

    return call


def test_T021_tools_are_printed_for_readers(inspect: Inspect) -> None:
    """Id, kind, description, arguments with types, defaults and rules, result, limits, examples."""
    code, out, err = inspect("functions.tools", "--tools")
    assert (code, err) == (0, "")
    assert [one.split()[0] for one in out.split("\n\n")] == [
        *("book", "caller", "convert", "count", "days_until", "fill", "pause", "primes", "summarize"),
    ]
    assert (
        "primes  (functions.tools:primes)  streaming\n"
        "  Give prime numbers, one by one.\n"
        "  below   int (integer), required, 2 to 1000000: All that are less than this.\n"
        "  gives   int (integer)\n"
        "  limits  600 calls a minute\n"
    ) in out
    assert "  **        any further arguments by name: What stands for each name.\n" in out
    assert '  example  convert(20.0, "celsius", "fahrenheit")\n' in out
    assert "one of celsius, fahrenheit, kelvin: The scale that it is in.\n" in out
    assert "  limits   10 s; 100 calls at once\n" in out


def test_T021_tools_as_json(inspect: Inspect) -> None:
    """The fields are those of a ToolSpec; a default is its value."""
    code, out, _ = inspect("functions.tools", "--tools", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["entrypoint"], told["error"]) == ("functions.tools", None)
    tools = {one["name"]: one for one in told["tools"]}
    since = tools["days_until"]["arguments"][1]
    assert (since["required"], since["default_value"], since["elixir_type"]) == (False, None, "binary | nil")
    assert "default_value" not in tools["days_until"]["arguments"][0]
    assert tools["summarize"]["arguments"][0]["validation"] == {
        "min_length": 1,
        "max_length": 100_000,
        "custom_rules": ["finite"],
    }


def test_T022_what_cannot_be_a_tool_is_told(inspect: Inspect, tmp_path, monkeypatch) -> None:
    """One sentence and an exit code, as JSON, too."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "oddly_named.py").write_text(
        "from invoker import function\n@function(name='a b')\ndef f(x: int) -> int: return x\n"
    )
    code, out, err = inspect("oddly_named", "--tools")
    assert (code, out) == (1, "")
    assert err.startswith("invoker: 'a b' cannot be the name of a tool")
    code, out, _ = inspect("oddly_named", "--tools", "--json")
    assert (code, json.loads(out)["tools"], "'a b'" in json.loads(out)["error"]) == (1, [], True)


def test_all_that_can_be_said() -> None:
    """Open arguments, every limit, rules of the result, a description of it."""

    @function(timeout_s=1.5, memory_bytes=1024, options=[toolbridge.ToolInfo(tools=("other",), batch=True)])
    def all_of_it(
        name: Annotated[str, Field(max_length=3)], *rest: int, number: Annotated[int, Field(le=0)] = 0, **more: int
    ) -> Annotated[float, Field(ge=-0.5)]:
        """Do it.

        Returns:
            A share.
        """
        return len(name) + len(rest) + number + len(more)

    assert tools_text([read(all_of_it)]) == (
        "all_of_it  batch\n"
        "  Do it.\n"
        "  name    str (binary), required, at most 3 long\n"
        "  number  int (integer), default 0, at most 0\n"
        "  *       any number of further arguments by position\n"
        "  **      any further arguments by name\n"
        "  gives   float (float), at least -0.5: A share.\n"
        "  limits  1.5 s; 1024 bytes of memory\n"
        "  tools   other\n"
    ).rstrip("\n")
    assert described_tools([read(all_of_it)])[0]["validation"] == {"min_value": -0.5}
