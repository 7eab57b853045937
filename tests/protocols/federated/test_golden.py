"""The golden traces: our server takes what a real client writes, byte for byte, and answers as a real server does."""

from __future__ import annotations

from collections import deque
from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.steps import Answered, Close, Send, Step
from invoker.message import Headers
from invoker.protocols.federated.messages import (
    Accepted,
    Blob,
    Eligibility,
    Notice,
    Offer,
    ReportTaken,
    SecAggTerms,
    Secure,
    Window,
)
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.session import DeviceSession
from tests.protocols.federated.client import golden
from tests.protocols.federated.coordinators import NoMailbox, NotedCoordinator

PLAN, START = Blob(golden.PLAN), Blob(golden.START)
TERMS = SecAggTerms({"w": (golden.MODULUS, len(golden.VALUES))}, 3, golden.THRESHOLD, 2)


class GoldenCoordinator(NotedCoordinator):
    """The coordinator of the traces: it has their windows, and their eligibility task."""

    def windows(self, device: Any, checkin: Any) -> tuple[Window, Window]:
        """Those of the traces."""
        self.noted.append(("windows", checkin))
        first, second = (Window(float(least), float(most), token.decode()) for token, least, most in golden.WINDOWS)
        return first, second


def replay(name: str, notices: dict[str, list[Notice]]) -> tuple[GoldenCoordinator, list[Step]]:
    """Let a trace's client talk to our session, and compare what the session sends.

    Args:
        name: Of the trace.
        notices: What the coordinator tells once it was asked something, by what it was asked.
    """
    coordinator = GoldenCoordinator(Eligibility("execution 1", PLAN, START))
    session = DeviceSession(coordinator, NoMailbox(), Headers(), DeviceSettings(**golden.settings()))
    steps: list[Step] = list(session.begin())
    said: deque[bytes] = deque()
    asked = 0
    for number, (side, frame) in enumerate(golden.read(name)):
        if side == "S":
            assert said, f"frame {number} is missing"
            ours, theirs = (pb.ServerStreamMessage.FromString(one) for one in (said.popleft(), frame))
            assert ours == theirs, f"frame {number}"
            continue
        found = list(session.receive(frame))
        for what, _ in coordinator.noted[asked:]:
            if notices.get(what):
                found += session.deliver(Answered("mail", [notices[what].pop(0)]))
        asked = len(coordinator.noted)
        assert not [step for step in found if isinstance(step, Close)]
        said += [step.frame for step in found if isinstance(step, Send)]
        steps += found
    assert not said
    steps += session.half_close()
    return coordinator, steps


def test_F146_a_real_client_reports() -> None:
    """Its checkins say what the catalogue says, its chunks become a report, and the end is OK."""
    offer = Offer("phase 1", "train", PLAN, START)
    coordinator, steps = replay("plain", {"check_in": [Accepted(offer)], "report": [ReportTaken()]})
    noted = dict(coordinator.noted)
    checkin = noted["check_in"]
    assert (checkin.population, checkin.retry_token, checkin.attestation) == ("iris", "a retry token", "measured")
    assert dict(checkin.weights) == {"train": 1.0}
    assert checkin.can.secagg
    assert (noted["report"].update, noted["report"].status, noted["report"].duration_s) == (golden.UPDATE, 0, 2.0)
    assert [step.error for step in steps if isinstance(step, Close)] == [None]


def test_F146_a_real_client_aggregates_securely() -> None:
    """Its messages of all four rounds reach the coordinator, the masked input together with the report."""
    server = [pb.ServerStreamMessage.FromString(frame) for side, frame in golden.read("secure") if side == "S"]
    rounds: list[Notice] = [
        Secure(secagg_pb.ServerToClientWrapperMessage.FromString(one.SerializeToString()))
        for one in (each.secure_aggregation_server_message for each in server)
        if one.WhichOneof("message_content") is not None
    ]
    offer = Offer("phase 1", "train", PLAN, START, TERMS)
    coordinator, steps = replay("secure", {"check_in": [Accepted(offer)], "secure": [*rounds, ReportTaken()]})
    secure = [value for name, value in coordinator.noted if name == "secure"]
    kinds = ["advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response"]
    assert [kind for kind, _ in secure] == kinds
    assert [report is not None for _, report in secure] == [False, False, True, False]
    assert (secure[2][1].update, secure[2][1].duration_s) == (b"", 2.0)
    assert [step.error for step in steps if isinstance(step, Close)] == [None]
