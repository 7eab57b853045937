"""Annotations in the syntax of Python 3.12, read and served by each interpreter of that age which is found.

An interpreter counts if it has our dependencies: this one, ``python3.12`` to ``python3.14`` on the path, and those that
``INVOKER_TEST_PYTHONS`` names, with the separator of paths between them.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parents[2]

MODULE = """
from __future__ import annotations
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, NotRequired, TypedDict, Unpack
import numpy as np
from numpy.typing import NDArray
from invoker import Field, Message, function

type Small = Annotated[int, Field(ge=0, le=3)]
type Again = Small
type Listed[T] = list[T]
type Numbers = Iterator[Small]
type Json = None | bool | int | float | str | list[Json] | dict[str, Json]
type Scores = Annotated[NDArray[np.float32], ("batch", 2)]
type Tree = Leaf | list[Tree]

@dataclass
class Leaf:
    name: Again
    note: str = "n"

@dataclass
class Box[T]:
    item: T
    rest: Listed[T] = field(default_factory=list)

class Keys(TypedDict):
    size: Small
    word: NotRequired[str]

def small(x: Small) -> Again: return x
def again(x: Again | None) -> str: return f"{x}"
def listed(x: Listed[Small]) -> int: return sum(x)
def stream(x: Numbers) -> Numbers: yield from x
def message(x: Iterator[Message[Small]]) -> Iterator[int]:
    for one in x:
        yield one.payload
def first[T](x: list[T]) -> T: return x[0]
def bound[T: int](x: T) -> T: return x
def either[T: (int, str)](x: list[T]) -> str: return f"{x}"
def every[*Ts](x: int) -> int: return x
def json(x: Json) -> Json: return x
def tree(x: Tree) -> str: return f"{x}"
def box(x: Box[Small]) -> Box[Small]: return x
def boxed(x: Box[Leaf]) -> str: return f"{x}"
def keys(x: int, **o: Unpack[Keys]) -> str: return f"{x} {sorted(o.items())}"
def wrong(x: int) -> Small: return x
def array(x: NDArray[np.float32]) -> NDArray[np.float32]: return x * 2
def shaped(x: Scores) -> int: return x.ndim
async def later[T](x: AsyncIterator[T]) -> AsyncIterator[T]:
    async for one in x:
        yield one
class Called[T]:
    def __call__(self, x: Listed[Small]) -> int: return len(x)
"""

GOOD = [
    ("small", 3, 3), ("again", 3, "3"), ("again", None, "None"), ("listed", [1, 2], 3), ("stream", 3, 3),
    ("message", 3, 3),
    ("first", ["a", 2], "a"), ("bound", 7, 7), ("either", [1, "a"], "[1, 'a']"), ("every", 5, 5),
    ("json", {"a": [1, None, {"b": True}]}, {"a": [1, None, {"b": True}]}), ("json", [[[]]], [[[]]]),
    ("tree", [{"name": 1}, [{"name": 2}]], "[Leaf(name=1, note='n'), [Leaf(name=2, note='n')]]"),
    ("box", {"item": 1, "rest": [2]}, {"item": 1, "rest": [2]}), ("later", 3, 3), ("Called", [1, 2], 2),
    ("array", [1, 2], [2.0, 4.0]), ("shaped", [[1, 2]], 2),
    ("boxed", {"item": {"name": 1}}, "Box(item=Leaf(name=1, note='n'), rest=[])"), ("wrong", 3, 3),
]  # fmt: skip
BAD = [
    ("small", 4), ("again", -1), ("listed", [4]), ("stream", 4), ("message", 4), ("bound", "a"), ("either", [1.5]),
    ("tree", [[{"name": 4}]]), ("box", {"item": 4}), ("boxed", {"item": {"name": 4}}), ("wrong", 4), ("Called", [4]),
    ("array", [1e39]), ("array", ["a"]), ("shaped", [[1, 2, 3]]),
]  # fmt: skip

PROGRAM = f"""
import sys
import typing
import newsyntax
from invoker.author.prepare import prepare_function
from invoker.codecs.schema import schema_of
from invoker.testing import Harness

for name, value, expected in {GOOD!r}:
    found = Harness(getattr(newsyntax, name)).run([value])
    assert found == [expected], (name, value, found)
for name, value in {BAD!r}:
    try:
        found = Harness(getattr(newsyntax, name)).run([value])
    except Exception:
        continue
    raise AssertionError((name, value, found))
spec = prepare_function(newsyntax.keys).spec
assert [(one.name, one.type, one.constraints.max_value) for one in spec.inputs] == [("x", int, None), ("size", int, 3)]
assert [one.name for one in spec.spare] == ["word"]
for name in ("small", "again", "stream", "listed", "box"):
    stream = prepare_function(getattr(newsyntax, name)).spec.inputs[0]
    assert '"maximum": 3' in str(schema_of(stream.type, stream.constraints)).replace("'", '"'), name
print("served", sys.version_info[:2])
"""


@functools.cache
def _pythons() -> tuple[str, ...]:
    named = [one for one in os.environ.get("INVOKER_TEST_PYTHONS", "").split(os.pathsep) if one]
    found = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)]
    return tuple(dict.fromkeys([sys.executable, *named, *(one for one in found if one)]))


def _can_serve(python: str) -> bool:
    ask = "import sys, grpc, msgspec, numpy, invoker.testing; sys.exit(sys.version_info < (3, 12))"
    return subprocess.run([python, "-c", ask], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_the_syntax_of_new_pythons_is_served(tmp_path: Path) -> None:
    """Named types with marks, with parameters and within themselves; functions and classes with type parameters."""
    pythons = [one for one in _pythons() if _can_serve(one)]
    if not pythons:
        pytest.skip("no Python 3.12 with our dependencies is found; INVOKER_TEST_PYTHONS may name one")
    (tmp_path / "newsyntax.py").write_text(MODULE)
    for python in pythons:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
        done = subprocess.run(
            [python, "-W", "error", "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=20 * SLOW, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{python}: {done.stderr}"
        assert done.stdout.startswith("served")
