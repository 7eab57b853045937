"""Replays every scenario and compares it with the trace that was recorded.

A difference is a change of behaviour. If it is meant, ``python -m tests.golden --write`` records it,
and the change of
the file is read like that of code. A class that was only renamed gets a row in `tests.golden.text.WORDS`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from invoker.codecs import custom, registered
from tests.golden.traces import PROTOCOLS, difference, file_of, record


@pytest.fixture(autouse=True)
def _no_other_codecs() -> Iterator[None]:
    """What other tests have registered is not here."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sessions_do_what_was_recorded(protocol: str) -> None:
    """Each frame and each event has the steps that it had."""
    recorded = file_of(protocol).read_text(encoding="utf-8")
    played = record(protocol)
    assert not (differs := difference(recorded, played)), "\n" + differs
    assert recorded == played


def test_a_difference_is_told_with_its_scenario() -> None:
    """Not the whole file."""
    assert difference("[a]\n> x\n  < y\n\n[b]\n> z\n", "[a]\n> x\n  < w\n\n[b]\n> z\n") == (
        "[a]\n@@ -1,2 +1,2 @@\n > x\n-  < y\n+  < w"
    )
    assert difference("[a]\n> x\n", "[a]\n> x\n\n[b]\n> y\n") == "[b]\n@@ -0,0 +1 @@\n+> y"
    assert difference("[a]\n> x\n", "[a]\n> x\n") == ""
