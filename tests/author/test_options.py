"""What the decorator says of streams beside their names: tensors and casting; the rest is told by test_spec.py."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterator
from typing import Annotated, Any, get_type_hints

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Tensor, function
from invoker.author.reader import read
from invoker.errors import SpecError
from invoker.protocols import graphpipe
from invoker.tensors import Casting, array_type

FLOAT = Tensor("float32", ["n", 3], "words")


def annotated(x: Annotated[NDArray[np.float32], ("n", 3), "words"]) -> NDArray[np.int64]: ...  # type: ignore[empty-body]  # its signature counts
def bare(x: np.ndarray) -> np.ndarray: ...  # type: ignore[type-arg, empty-body]  # as authors write it
def plain(x: int) -> int: ...  # type: ignore[empty-body]  # as above
def unsaid(x): ...  # type: ignore[no-untyped-def]  # as above
def streamed(xs: Iterator[Any]) -> Iterator[Any]: ...  # type: ignore[empty-body]  # as above


@pytest.mark.parametrize("fn", [bare, unsaid, annotated])
def test_G068_declarations_equal_annotations(fn: Any) -> None:
    """Also beside annotations that leave it open, or say the same."""
    spec = read(function(inputs={"x": FLOAT}, outputs={"y": Tensor("int64")})(fresh(fn)))
    assert [one.type for one in spec.inputs] == [get_type_hints(annotated, include_extras=True)["x"]]
    assert [(one.name, one.type) for one in spec.outputs] == [("y", NDArray[np.int64])]


def test_G068_streams_have_declared_items() -> None:
    """A generator of arrays is declared as a function of them is."""
    spec = read(function(inputs={"xs": FLOAT}, outputs={"ys": Tensor()})(fresh(streamed)))
    assert array_type(spec.inputs[0].type).scalar is np.float32  # type: ignore[union-attr]  # it is an array
    assert spec.outputs[0].type is np.ndarray
    assert not spec.inputs[0].single


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("string", np.object_), ("str", np.str_), ("bool", np.bool_), ("float16", np.float16)],
)
def test_G068_each_type_has_its_annotation(dtype: str, wanted: type) -> None:
    """Bytes are objects (G-036)."""
    spec = read(function(inputs={"x": Tensor(dtype)})(fresh(unsaid)))
    assert spec.inputs[0].type == NDArray[wanted]  # type: ignore[valid-type]  # made at run time


def test_G068_conflicts_with_annotations_are_refused() -> None:
    """One sentence tells both."""
    with pytest.raises(SpecError, match=r"'x' of 'plain' is annotated int, and declared as Tensor\(.*drop one of them"):
        read(function(inputs={"x": FLOAT})(fresh(plain)))
    with pytest.raises(SpecError, match="drop one of them"):
        read(function(inputs={"x": Tensor("float32", ["n", 4], "words")})(fresh(annotated)))
    with pytest.raises(SpecError, match="drop one of them"):
        read(function(outputs={"y": Tensor("int8")})(fresh(annotated)))


def test_G068_declarations_need_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has it not is told how to get it."""
    original = builtins.__import__

    def missing(name: str, *args: Any, **more: Any) -> Any:
        if name == "invoker.tensors.arrays":
            raise ModuleNotFoundError("No module named 'numpy'")
        return original(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SpecError, match=r"needs numpy.*pip install numpy"):
        read(function(inputs={"x": FLOAT})(fresh(unsaid)))


@pytest.mark.parametrize(
    "said",
    [{}, {"inputs": {"x": FLOAT}}],
    ids=["annotated", "declared"],
)
def test_G061_casting_stands_beside_the_arrays(said: dict[str, Any]) -> None:
    """Of inputs only, also of declared ones."""
    casting = graphpipe.Casting(inputs="same_kind")
    spec = read(function(**said, options=[casting])(fresh(unsaid if said else annotated)))
    wanted = array_type(spec.inputs[0].type)
    assert wanted is not None
    assert (wanted.scalar, wanted.casts) == (np.float32, True)
    assert spec.options == {graphpipe.Casting: casting}
    assert Casting.SAME_KIND not in getattr(spec.outputs[0].type, "__metadata__", ())
    assert read(annotated).options == {}


def test_G061_casting_without_arrays_is_refused() -> None:
    """It would do nothing."""
    with pytest.raises(SpecError, match="is for arrays, and no input is annotated as one"):
        read(function(options=[graphpipe.Casting(inputs="same_kind")])(fresh(plain)))
    with pytest.raises(SpecError, match=r"outputs='same_kind'.* is for arrays, and no output is annotated as one"):
        read(function(options=[graphpipe.Casting(outputs="same_kind")])(fresh(plain)))


def test_G061_output_casting_stands_beside_the_arrays_that_are_given() -> None:
    """Of outputs only."""
    spec = read(function(options=[graphpipe.Casting(outputs="same_kind")])(fresh(annotated)))
    assert Casting.SAME_KIND in spec.outputs[0].type.__metadata__
    assert Casting.SAME_KIND not in getattr(spec.inputs[0].type, "__metadata__", ())


def fresh(fn: Any) -> Any:
    """The same function, to be decorated, which marks it."""

    @functools.wraps(fn)
    def copy(*args: Any) -> Any: ...

    return copy
