"""What is settled before the function runs; what it comes to is tested with the session."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.core.steps import Close, EndInput, Feed, Open, Send
from invoker.protocols.graphpipe.prepare import joint, prepare, refused
from invoker.tensors import Code, GraphPipeError
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, model_of


@function(batch_max=4)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x


def test_a_request_is_opened_fed_and_ended_in_one_go() -> None:
    """Whoever performs the steps needs nothing else from the peer."""
    steps = prepare(model_of(batched), ask(np.ones((1, 2), np.float32))).steps
    assert [type(one) for one in steps] == [Open, Feed, EndInput]


def test_G092_metadata_is_answered_at_once() -> None:
    """Nothing is invoked."""
    checked = prepare(model_of(batched), METADATA_REQUEST)
    assert [type(one) for one in checked.steps] == [Send, Close]
    assert checked.about == "metadata"


def test_a_refusal_keeps_no_traceback() -> None:
    """It would lead to the buffer (G-103)."""
    try:
        raise GraphPipeError(Code.SHAPE, "wrong")
    except GraphPipeError as error:
        checked = refused(error, about="x")
    sent, closed = checked.steps
    assert isinstance(sent, Send)
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.__traceback__ is None
    assert code_of(sent.frame) is Code.SHAPE
    assert checked.about == "x"


def test_G076_known_requests_are_joined_as_unknown_ones_are() -> None:
    """The second request of a kind has a plan, and its rows stand behind those of the first."""
    model = model_of(batched)
    several = [prepare(model, ask(np.full((count, 2), count, np.float32))) for count in (1, 2, 1, 2)]
    together = joint(model, several)
    assert together.steps[1].message.media_type.endswith("shape=6x2")  # type: ignore[union-attr]  # a Feed
    rows = np.frombuffer(together.steps[1].message.payload, np.float32)  # type: ignore[union-attr]
    assert rows.reshape(6, 2)[:, 0].tolist() == [1, 2, 2, 1, 2, 2]
    with pytest.raises(GraphPipeError, match="together the inputs have 48 bytes, which exceeds the limit of 47"):
        joint(model, several, limit_bytes=47)
