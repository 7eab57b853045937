"""What the log says of a request."""

from __future__ import annotations

import numpy as np

from invoker.protocols.graphpipe.binding import Given
from invoker.protocols.graphpipe.model import Port
from invoker.protocols.graphpipe.session import prepare
from invoker.protocols.graphpipe.telling import tell_asked, tell_given
from invoker.tensors import InferRequest, MetadataRequest
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, model_of

TENSOR = to_tensor(np.float32([[1, 2]]))


def echo(x: int) -> int:
    return x


def test_G105_names_types_and_shapes() -> None:
    """Of the first eight inputs."""
    assert tell_given([Given(Port("x", "x", ""), TENSOR)]) == "infer x:Float32[1, 2]"
    assert tell_given(()) == "infer"
    assert tell_given([Given(Port("x", "x", ""), TENSOR)] * 9).endswith("x:Float32[1, 2] ...")
    assert tell_asked(InferRequest((TENSOR,) * 9)) == f"infer{' :Float32[1, 2]' * 8} ..."
    two = InferRequest((TENSOR,) * 2, ("\n" * 50, ""))
    assert tell_asked(two) == "infer '" + "\\n" * 40 + "':Float32[1, 2] :Float32[1, 2]"
    assert (tell_asked(MetadataRequest()), tell_asked(None)) == ("metadata", "nothing")


def test_G105_G106_a_refused_request_is_told_too() -> None:
    """With the names that it gives, and without its values."""
    model = model_of(echo)
    assert prepare(model, ask(b"secret", input_names=("y",))).about == "infer 'y':String[]"
    assert prepare(model, METADATA_REQUEST).about == "metadata"
    assert prepare(model, b"junk").about == "nothing"
