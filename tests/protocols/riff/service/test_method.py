"""`invoker.protocols.riff.service.method`: riff's method of the gRPC transports."""

from __future__ import annotations

import pytest

from invoker.core.steps import Open
from invoker.protocols.riff.service.method import riff_method
from invoker.transports.grpc.methods import metadata_of
from tests.transports.riff import start


def test_its_path_is_that_of_the_proto():
    """As riff's clients say it."""
    assert riff_method().path == "/streaming.Riff/Invoke"


@pytest.mark.parametrize(("pairs", "function"), [((("invoker-function", "f"),), "f"), ((("x", "f"),), ""), ((), "")])
def test_riff_takes_the_function_from_the_metadata(pairs, function):
    """And gives it all of them."""
    (step,) = riff_method().session(metadata_of(pairs)).receive(start())
    assert isinstance(step, Open)
    assert step.function == function
    assert dict(step.metadata) == dict(pairs)
