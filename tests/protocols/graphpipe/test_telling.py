"""What the log says of a request."""

from __future__ import annotations

import numpy as np
import pytest

from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.model import ModelPort
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.telling import tell_asked, tell_given
from invoker.tensors import InferRequest, MetadataRequest
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, model_of

TENSOR = to_tensor(np.float32([[1, 2]]))


def echo(x: int) -> int:
    return x


def test_G105_names_types_and_shapes() -> None:
    """Of the first eight inputs."""
    assert tell_given([GivenInput(ModelPort("x", "x", ""), TENSOR)]) == "infer x:Float32[1, 2]"
    assert tell_given(()) == "infer"
    assert tell_given([GivenInput(ModelPort("x", "x", ""), TENSOR)] * 9).endswith("x:Float32[1, 2] ...")
    model = model_of(echo)
    further = " :Float32[1, 2]" * 7
    assert tell_asked(InferRequest((TENSOR,) * 9), model) == f"infer x:Float32[1, 2]{further} ..."
    assert (tell_asked(MetadataRequest(), model), tell_asked(None, model)) == ("metadata", "nothing")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "x"),
        ("x", "x"),
        ("input0", "x"),
        ("score", "score"),
        ("a b", "'a b'"),
        ("é", r"'\xe9'"),
        ("\n" * 50, "'" + r"\n" * 40 + "'"),
        ("y" * 50, "y" * 40),
    ],
)
def test_G105_an_input_has_one_spelling(said: str, told: str) -> None:
    """The declared name where there is one, by position and by alias; else a word, or what is quoted."""
    assert tell_asked(InferRequest((TENSOR,), (said,)), model_of(echo)) == f"infer {told}:Float32[1, 2]"
    two = InferRequest((TENSOR,) * 2, (said or "x", ""))
    assert tell_asked(two, model_of(echo)).endswith(" :Float32[1, 2]")


def test_G105_G106_a_refused_request_is_told_too() -> None:
    """With the names that it gives, and without its values."""
    model = model_of(echo)
    assert prepare(model, ask(b"secret", input_names=("y",))).about == "infer y:String[]"
    assert prepare(model, METADATA_REQUEST).about == "metadata"
    assert prepare(model, b"junk").about == "nothing"
