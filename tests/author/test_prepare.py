"""From an entrypoint to functions that are ready to run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from invoker.author.prepare import prepare, prepare_function, with_actions
from invoker.context import Context
from invoker.errors import ConfigError, LoadError, SpecError
from tests.forget import forget

Write = Callable[[str, str], Path]


class Odd:
    """Nothing that codecs know."""

    def __init__(self, thing: object, other: object) -> None: ...


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module into the current directory, which is a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    yield write_file
    forget(tmp_path, before)


def test_one_function_is_named_after_its_attribute(write: Write) -> None:
    """Also when it is a lambda or a partial."""
    write(
        "prep_a.py",
        "import functools\ndef add(a, b): return a + b\nplus = functools.partial(add, 1)\ninc = lambda x: x + 1",
    )
    for attribute, expected in (("plus", 3), ("inc", 3)):
        (prepared,) = prepare(f"prep_a:{attribute}")
        assert (prepared.spec.name, prepared.spec.entrypoint) == (attribute, f"prep_a:{attribute}")
        assert list(prepared.function.open([iter([2])], Context())[0]) == [expected]


def test_a_catalogue_gives_all_its_functions(write: Write) -> None:
    """Each with an entrypoint of its own."""
    write("prep_b.py", "from invoker import function\n@function\ndef a(x): ...\n@function(name='z')\ndef b(x): ...")
    assert [(one.spec.name, one.spec.entrypoint) for one in prepare("prep_b")] == [("a", "prep_b:a"), ("z", "prep_b:b")]


def test_equal_names_in_a_catalogue_are_refused(write: Write) -> None:
    """A caller could not tell them apart."""
    write("prep_c.py", "from invoker import function\n@function\ndef a(x): ...\n@function(name='a')\ndef b(x): ...")
    with pytest.raises(SpecError, match=r"'prep_c:b' and 'prep_c:a' are both named 'a'; give one of them"):
        prepare("prep_c")


def test_a_file_alone_is_named_after_its_function(write: Write) -> None:
    """Not after the file."""
    write("prep_d.py", "def fn(x): ...")
    assert prepare("./prep_d.py")[0].spec.name == prepare("prep_d")[0].spec.name == "fn"


def test_certain_mistakes_refuse_the_function_with_their_line(write: Write) -> None:
    """Before a port opens."""
    path = write("prep_e.py", "async def get(x): ...\nasync def fn(x):\n  get(x)\n  return x")
    with pytest.raises(SpecError, match="is never awaited") as caught:
        prepare("prep_e:fn")
    assert caught.value.detail.endswith(f"({path}:3)")


def test_warnings_are_handed_on(write: Write) -> None:
    """They do not refuse it."""
    write("prep_f.py", "import time\nasync def fn(x):\n  time.sleep(x)\n  return x")
    (prepared,) = prepare("prep_f:fn")
    assert [one.is_error for one in prepared.warnings] == [False]


def test_an_annotation_that_cannot_be_decoded_is_refused() -> None:
    """No codec makes one of those."""

    def fn(x: Odd) -> int:
        return 1

    with pytest.raises(SpecError, match="input #0 'x' of 'fn' cannot be decoded: "):
        prepare_function(fn)


def test_E071_actions_name_functions_that_are_served_or_loaded(write: Write) -> None:
    """By name or entrypoint; one that is not served yet is served from then on, and several names may mean one."""
    write("acts.py", "def one(x: int) -> int: return x\n\ndef two(x: int) -> int: return x\n")
    served, actions = with_actions(
        prepare("acts:one"),
        [("A", "one"), ("B", "acts:one"), ("C", "acts:two"), ("D", "acts:two"), ("A", "acts:one")],
    )
    assert [one.spec.name for one in served] == ["one", "two"]
    assert actions == {"A": "one", "B": "one", "C": "two", "D": "two"}


def test_E071_a_function_whose_name_is_taken_is_named_by_its_entrypoint(write: Write) -> None:
    """So two modules may each have a `generate`."""
    for name in ("first", "second"):
        write(f"{name}.py", "def generate(x: int) -> int: return x\n")
    served, actions = with_actions(prepare("first:generate"), [("G", "second:generate")])
    assert [one.spec.name for one in served] == ["generate", "second:generate"]
    assert actions == {"G": "second:generate"}


def test_E071_what_no_action_can_be_is_refused(write: Write) -> None:
    """Each with the reason."""
    fixed = "from invoker import function\n@function(name='one')\ndef other(x: int) -> int: return x\n"
    write("acts.py", "def one(x: int) -> int: return x\n\ndef two(x: int) -> int: return x\n")
    write("more.py", fixed)
    found = prepare("acts:one")
    with pytest.raises(ConfigError, match="neither module:function nor one of the functions that are served: one"):
        with_actions(found, [("A", "three")])
    with pytest.raises(ConfigError, match="set to both 'one' and 'two'"):
        with_actions(found, [("A", "one"), ("A", "acts:two")])
    with pytest.raises(SpecError, match="both named 'one'"):
        with_actions(found, [("A", "more:other")])
    with pytest.raises(LoadError):
        with_actions(found, [("A", "missing:fn")])


@pytest.mark.parametrize(
    ("annotation", "fix"),
    [
        ("Annotated[NDArray[np.float32], 'batch', 3]", "write its shape as one, ('batch', 3)"),
        ("Annotated[NDArray[np.float32], (1.5,)] | None", "a size is a whole number"),
        ("np.ndarray[np.float32]", "write NDArray[float32]"),
    ],
)
@pytest.mark.parametrize(
    ("signature", "place"),
    [("x: {}", "input 'x'"), ("a: int, x: {} = None", "input 'x'"), ("a: int) -> ({}", "output")],
)
def test_G068_arrays_of_no_shape_are_refused(
    write: Write, annotation: str, fix: str, signature: str, place: str
) -> None:
    """Inputs with defaults and outputs too, whichever protocols are to be served."""
    head = "from typing import Annotated\nimport numpy as np\nfrom numpy.typing import NDArray\n"
    write("shapely.py", f"{head}def fn({signature.format(annotation)}): ...")
    with pytest.raises(SpecError) as caught:
        prepare("shapely:fn")
    assert caught.value.detail.startswith(place)
    assert "of 'fn'" in caught.value.detail
    assert fix in caught.value.detail
