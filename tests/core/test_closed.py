"""Outputs that take no values any more, by what each raises."""

import pytest

from invoker.core.closed import ClosedOutput, EndedOutput, MutedOutput, UnwantedOutput
from invoker.errors import Discarded, EncodeError, StopInvocation


@pytest.mark.parametrize(
    ("kind", "error", "is_wanted"),
    [
        (UnwantedOutput, Discarded, False),
        (MutedOutput, Discarded, False),
        (ClosedOutput, StopInvocation, False),
        (EndedOutput, EncodeError, True),
    ],
)
def test_each_kind_refuses_values_in_its_own_way(kind, error, is_wanted):
    """A driver goes on, stops the generator, or reports the author's error; counts are kept for the statistics."""
    output = kind(2, "log", emitted=3, is_ended=True)
    with pytest.raises(error) as raised:
        output.encode(object())
    assert raised.type is error
    assert (output.index, output.name, output.emitted, output.is_ended) == (2, "log", 3, True)
    assert output.is_wanted is is_wanted
