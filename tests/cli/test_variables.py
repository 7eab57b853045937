"""Tests of the search for variables that mean nothing."""

from __future__ import annotations

import pytest

from invoker.cli.variables import strays
from invoker.server.table import TABLE
from invoker.settings import setting_of


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("INVOKER_THREDS", "did you mean INVOKER_THREADS?"),
        ("INVOKER_GRPC_PORT", "did you mean GRPC_PORT?"),
        ("INVOKER_PORT", "did you mean PORT?"),
        ("INVOKER_ZEBRA_QUAGGA", "'invoker --help' lists those that there are"),
    ],
)
def test_a_name_that_no_setting_has_is_told_with_the_nearest(name: str, hint: str) -> None:
    """In one sentence."""
    assert list(strays({name: "9"})) == [f"the environment variable {name} is not known and is ignored; {hint}"]


def test_names_that_others_set_are_let_pass() -> None:
    """Those of settings, of other programs, of Kubernetes' Services, and our own between processes."""
    known = {setting_of(one).env: "x" for one in TABLE.settings}
    service = {"INVOKER_SERVICE_HOST": "10.0.0.1", "INVOKER_PORT": "tcp://10.0.0.1:80", "INVOKER_PORT_80_TCP": "x"}
    assert (
        list(
            strays(
                known
                | service
                | {"PATH": "/bin", "INVOKER_WORKER": "{}", "INVOKER_TEST_SLOW": "2", "INVOKER_LLM_KEY_A": "k"}
            )
        )
        == []
    )
