"""What devices do with a plan."""

from __future__ import annotations

import pytest

from invoker.connect.failure import UsageError
from invoker.protocols.federated.verbs.simulation.work import function_at, numbered


@pytest.mark.parametrize(
    ("entrypoint", "why"),
    [
        ("nowhere:fn", "No module named"),
        ("math:nothing", "no attribute"),
        ("math:pi", "is float"),
        ("math", "give mod:fn"),
    ],
)
def test_what_is_no_function_is_refused(entrypoint: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        function_at(entrypoint, "--updates")


def test_functions_take_as_much_as_they_want_to_know() -> None:
    assert numbered("tests.protocols.federated.verbs.simulation.functions:examples", "x")(2, 5) == [4]
    assert int(numbered("tests.protocols.federated.verbs.simulation.functions:given", "x")(3, 5)["w"][0]) == 8
