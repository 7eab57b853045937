"""Tensors that an author declares without annotations: made without numpy, refused with the fix."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from invoker.errors import SpecError
from invoker.tensors.declared import ANY_SIZE, Tensor


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        ("Float32", "float32"),
        (np.float32, "float32"),
        (np.dtype("<f4"), "float32"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (np.bool_, "bool"),
        ("String", "string"),
        (bytes, "string"),
        (np.object_, "string"),
        (str, "str"),
        (np.str_, "str"),
        (None, "any"),
        ("any", "any"),
    ],
)
def test_G068_types_have_their_usual_names(dtype: Any, name: str) -> None:
    """Those of numpy, of Python, and of the schema."""
    assert Tensor(dtype).dtype == name


def test_G068_shapes_are_lists_of_sizes() -> None:
    """Any size is None or -1; no shape at all is any."""
    assert Tensor("int8", [-1, None, 3, "batch"]).shape == (ANY_SIZE, ANY_SIZE, 3, "batch")
    assert Tensor("int8", ()).shape == ()
    assert Tensor("int8").shape is None
    assert Tensor("int8", [1], "words").description == "words"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"dtype": "flaot32"}, "did you mean 'float32'"),
        ({"dtype": "complex64"}, "there is no such type"),
        ({"dtype": object()}, "there is no such type; there are uint8"),
        ({"dtype": "int8", "shape": 3}, r"must be a list of sizes, such as \[-1, 3\]"),
        ({"dtype": "int8", "shape": "ab"}, "must be a list of sizes"),
        ({"dtype": "int8", "shape": [-2]}, "declares a size -2; a size is a whole number, a name, or None"),
        ({"dtype": "int8", "shape": [True]}, "declares a size True"),
        ({"dtype": "int8", "description": 3}, "must be text"),
    ],
)
def test_G068_what_is_no_tensor_is_refused(said: dict[str, Any], text: str) -> None:
    """Where it is written."""
    with pytest.raises(SpecError, match=text):
        Tensor(**said)


def test_G068_numpy_is_not_imported_to_declare() -> None:
    """A module that only declares need not wait for it."""
    code = "import sys; from invoker import Tensor; Tensor('float32', [-1]); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
