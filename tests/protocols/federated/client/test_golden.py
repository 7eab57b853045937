"""The golden traces: our client writes what a real client writes, byte for byte, against what a real server says."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from invoker.protocols.federated.client import secagg
from invoker.protocols.federated.client.messages import Assigned, Compute, EligibilityAsked, Hello, Report
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.client.session import DeviceSession
from invoker.protocols.federated.client.windows import Windows
from invoker.protocols.federated.wire.keys import KeyPair
from tests.protocols.federated.client import golden

HELLO = Hello("iris", "a retry token", "measured", "fcp 1.0")


def replay(trace: golden.Trace, react: Callable[[DeviceSession, Any], None]) -> DeviceSession:
    """Let our client talk to the server of a trace, and compare each of its frames."""
    session = DeviceSession(HELLO, Windows(lambda: 0.0, random.Random(1)), new_secagg=SecAggClient)
    session.start()
    said = deque(session.drain())
    for number, (side, frame) in enumerate(trace):
        if side == "C":
            assert said, f"frame {number} is missing"
            assert said.popleft().hex() == frame.hex(), f"frame {number}"
            continue
        for event in session.receive(frame):
            react(session, event)
        said += session.drain()
    assert not said
    return session


@pytest.mark.parametrize("name", golden.TRACES)
def test_the_files_are_what_the_catalogue_gives(name: str) -> None:
    """They are written by tests/protocols/federated/client/golden.py."""
    assert (golden.FOLDER / f"{name}.trace").read_text() == golden.written(golden.TRACES[name]())


def test_F146_a_plain_round_against_a_real_server() -> None:
    """Checkin, eligibility, assignment and a report of three chunks."""

    def react(session: DeviceSession, event: Any) -> None:
        if isinstance(event, EligibilityAsked):
            assert (event.plan.data, event.checkpoint.data) == (golden.PLAN, golden.START)
            session.eligible({"train": 1.0})
        elif isinstance(event, Assigned):
            session.report(Report(golden.UPDATE, duration_s=2.0))

    session = replay(golden.read("plain"), react)
    attempt = session.attempt()
    assert (attempt.end, attempt.task, attempt.retry.token) == ("reported", "train", "for the accepted")
    trace = golden.read("plain")
    assert attempt.sent == sum(len(frame) for side, frame in trace if side == "C")
    assert attempt.received == sum(len(frame) for side, frame in trace if side == "S")
    assert session.is_over


def test_F146_secure_aggregation_against_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four rounds, with keys, nonces and coefficients that the test gives."""
    secrets = iter((golden.ENC, golden.NOISE))
    monkeypatch.setattr(secagg, "KeyPair", lambda: KeyPair(next(secrets)))
    monkeypatch.setattr(os, "urandom", lambda size: b"\7" * size)

    def react(session: DeviceSession, event: Any) -> None:
        if isinstance(event, EligibilityAsked):
            session.eligible({"train": 1.0})
        elif isinstance(event, Assigned):
            session.report(Report(vectors={"w": list(golden.VALUES)}, duration_s=2.0))
        elif isinstance(event, Compute):
            session.computed(event.job())

    session = replay(golden.read("secure"), react)
    assert session.attempt().end == "reported"
    assert session.is_over
