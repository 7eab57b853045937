"""What the peer of each real driver hears is what the reference gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.reference.allowed import References
from tests.reference.driver import CANCEL, CUT, DEADLINE, HALF_CLOSE
from tests.reference.functions import NAMES
from tests.reference.players import PLAYERS, driver_of, engine_of
from tests.reference.protocols import PROTOCOLS
from tests.reference.talk import Talk

ORDERED = {name: name not in {"one_ends_early", "one_raises", "crossed"} for name in NAMES}
"""Functions that give one iterator, or none."""

EXAMPLES = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # a fault may be a wait for ever, which takes too long to make small
    suppress_health_check=list(HealthCheck),
)

WHOLE = {"whole", "whole and long"}
REQUEST = {"request, async", "request, sync"}


@st.composite
def scripts(draw: st.DrawFn, talk: Talk, kind: str) -> list[Any]:
    """A script with a talk's frames: cuts anywhere, and one of all endings."""
    if kind in WHOLE:
        return [*talk.frames, HALF_CLOSE]
    ending = draw(st.sampled_from([HALF_CLOSE, HALF_CLOSE, HALF_CLOSE, CANCEL, DEADLINE]))
    if kind in REQUEST:
        ending = HALF_CLOSE
    count = len(talk.frames) if ending is HALF_CLOSE else draw(st.integers(0, len(talk.frames)))
    script: list[Any] = [*talk.frames[:count], ending]
    for at in sorted(draw(st.lists(st.integers(0, count), max_size=2, unique=True)), reverse=True):
        script.insert(at, CUT)
    return script


def compare(kind: str, name: str, talk: Talk, script: Sequence[Any]) -> None:
    """Play a script to a real driver, and fail unless its peer hears what the reference gives."""
    play, form = PLAYERS[kind]
    is_storing = kind.startswith("session")
    engine, has_trailers = engine_of(form), kind not in REQUEST
    references = References(
        talk, script, engine, is_ordered=ORDERED[name], is_storing=is_storing, has_trailers=has_trailers
    )
    driver = driver_of(engine)
    try:
        references.check(play(talk, references.script, driver, references.usual.cuts))
        assert not engine.running, "an invocation is left"
    finally:
        driver.threads.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """At a cut time passes; riff's second for a refusal is shorter here."""
    monkeypatch.setattr("invoker.protocols.riff.session._PATIENCE_S", 0.01)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", PLAYERS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_driver_tells_what_the_reference_tells(protocol, kind):
    """Values, their order, media types and headers; the status, its text and trailers; of any function and script."""

    @settings(EXAMPLES)
    @given(st.data())
    def run(data):
        name = data.draw(st.sampled_from(NAMES))
        talk = data.draw(PROTOCOLS[protocol](PLAYERS[kind][1], name))
        compare(kind, name, talk, data.draw(scripts(talk, kind)))

    run()
