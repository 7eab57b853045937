"""Catalogues that cannot be tools stop the process before it serves anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import SLOW
from tests.e2e.process import LOCAL

SOURCES = {
    "bad name": (
        "from invoker import function\n@function(name='a b')\ndef f(x: int) -> int: return x\n",
        "'a b' cannot be the name of a tool",
    ),
    "same name": (
        (
            "from invoker import function\n@function(name='one')\ndef f(x: int) -> int: return x\n"
            "@function(name='one')\ndef g(x: int) -> int: return x\n"
        ),
        "are both named 'one'",
    ),
    "unknown rule": (
        (
            "from typing import Annotated\nfrom invoker import Field, function\n"
            "@function\ndef f(x: Annotated[str, Field(rules='emial')]) -> str: return x\n"
        ),
        "no rule is named 'emial' (did you mean 'email'?)",
    ),
    "wrong pattern": (
        (
            "from typing import Annotated\nfrom invoker import Field, function\n"
            "@function\ndef f(x: Annotated[str, Field(pattern='(')]) -> str: return x\n"
        ),
        "is not a regular expression: missing )",
    ),
    "wrong pattern of another library": (
        (
            "from typing import Annotated\nfrom pydantic import Field\nfrom invoker import function\n"
            "@function\ndef f(x: Annotated[str, Field(pattern='(')]) -> str: return x\n"
        ),
        "the pattern '(' is not a regular expression",
    ),
    "a bound of a text": (
        (
            "from typing import Annotated\nfrom invoker import Field, function\n"
            "@function\ndef f(x: Annotated[str, Field(ge=1)]) -> str: return x\n"
        ),
        "parameter 'x' of 'f': ge, gt, le and lt are for numbers, and the annotation is str",
    ),
    "a bound of the result": (
        (
            "from typing import Annotated\nfrom invoker import Field, function\n"
            "@function\ndef f(x: str) -> Annotated[str, Field(le=1)]: return x\n"
        ),
        "the result of 'f': ge, gt, le and lt are for numbers",
    ),
    "a rule in a postponed annotation": (
        (
            "from __future__ import annotations\nfrom typing import Annotated\nfrom invoker import Field, function\n"
            "@function\ndef f(x: Annotated[str, Field(rules='nope')]) -> str: return x\n"
        ),
        "invoker: parameter 'x' of 'f': no rule is named 'nope' (there are non_empty, ",
    ),
    "not callable": ("f = 5\n", "is an int, which cannot be called"),
    "a class": ("class f:\n    pass\n", "'f' is a class without __call__"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_T022_T034_T042_T048_what_cannot_be_a_tool_stops_the_process(
    name: str, tmp_path: Path, forked_python: Path
) -> None:
    """The exit code is not 0, and the sentence names what is wrong."""
    source, words = SOURCES[name]
    (tmp_path / "served.py").write_text(source)
    entrypoint = "served:f" if "@function" not in source else "served"
    made = subprocess.run(
        [forked_python, "-m", "invoker", entrypoint, "--protocols", "riff,toolbridge"],
        cwd=tmp_path,
        env={**os.environ, **LOCAL, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=5 * SLOW,
        check=False,
    )
    assert made.returncode == 1, made.stderr
    assert words in made.stderr
    assert "Traceback" not in made.stderr
