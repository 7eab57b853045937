"""Conversations of devices, the function of a round, and whole populations: what the coordinator decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.steps import Answered, Emitted, Finished, Wants
from invoker.errors import Cancelled, DeadlineExceeded, FunctionError, InvocationError, Status, StatusError
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.federated.aggregating import Abandon, AggregatingSession, Begin, Enough, Report
from invoker.protocols.federated.messages import Accepted, Over, Rejected, ReportTaken, Resume, Secure
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.tensors.checkpoint import CHECKPOINT
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play
from tests.golden.scenarios import populations
from tests.protocols.federated.chunked import ack, chunk, data, end, start
from tests.protocols.federated.coordinators import (
    OFFER,
    SECURE_OFFER,
    TASK,
    NotedCoordinator,
    Talk,
    checkin,
    options,
    report,
    trying,
)
from tests.protocols.federated.test_session_secure import masked, secure


class _Half:
    """The device half-closes."""


class _Forced:
    """Frames of a device that keeps to no rules."""

    def __init__(self, *messages: pb.ClientStreamMessage) -> None:
        self.messages = messages


class _Trouble:
    """The coordinator refuses what it is asked from now on."""

    def __init__(self, what: str, error: InvocationError | None = None) -> None:
        self.what, self.error = what, error


def _asks(content: str) -> Secure:
    message = secagg_pb.ServerToClientWrapperMessage()
    getattr(message, content).SetInParent()
    return Secure(message)


_HALF = _Half()
_YES, _TAKEN, _NO = Accepted(OFFER), ReportTaken(), Rejected("full")
_LATE = Over(StatusError(Status.DEADLINE_EXCEEDED, "too late"))


def _empty(**fields: Any) -> pb.ClientStreamMessage:
    message = pb.ClientStreamMessage(**fields)
    message.secure_aggregation_client_message.SetInParent()
    return message


_WHOLE = [checkin(), _YES, report(), _TAKEN, _HALF]
_RANDOM = bytes(range(256)) * 20

_TALKS: dict[str, list[Any]] = {
    "a report": _WHOLE,
    "with an ack": [checkin(ack=True), _YES, report(), _TAKEN, _HALF],
    "an eligibility task": [trying(), checkin(weights=[("train", 2.0)]), _YES, report(), _TAKEN, _HALF],
    "an eligibility task without an ack": [trying(ack=False), checkin(weights=[]), _NO, _HALF],
    "eligible twice": [trying(), checkin(weights=[("train", 1.0), ("train", 2.0)])],
    "not eligible": [trying(), checkin(weights=[("train", -1.0)])],
    "another version": [trying(), checkin(weights=[("train", 1.0)], version=2), _YES],
    "a report first": [report()],
    "secure first": [secure("advertise_keys")],
    "nothing": [_HALF],
    "two eligibility checkins": [trying(), trying()],
    "two checkins": [checkin(), checkin()],
    "a checkin behind the acceptance": [checkin(), _YES, checkin()],
    "an eligibility checkin behind the acceptance": [checkin(), _YES, trying()],
    "a report before the decision": [checkin(), report()],
    "two reports": [checkin(), _YES, report(), report()],
    "behind the last answer": [checkin(), _NO, checkin()],
    "another population": [trying("iris"), checkin("roses")],
    "another token": [trying("iris", retry_token="a"), checkin("iris", retry_token="b", weights=[])],
    "another version of the client": [trying("iris", client_version="a"),
        checkin("iris", client_version="b", weights=[])],
    "no population": [checkin("")],
    "an id": [pb.ClientStreamMessage(internal_client_id="someone"), checkin()],
    "empty messages": [*[pb.ClientStreamMessage()] * 3, _empty(), checkin()],
    "empty messages without end": [*[pb.ClientStreamMessage()] * 6],
    "leaves behind the task": [trying(), _HALF],
    "leaves while it waits": [checkin(), _HALF],
    "leaves behind the acceptance": [checkin(), _YES, _HALF],
    "leaves behind the report": [checkin(), _YES, report(), _HALF, _TAKEN],
    "the desk ends it": [_LATE],
    "the desk ends it later": [checkin(), _YES, _LATE],
    "the desk ends it behind the report": [checkin(), _YES, report(), _LATE],
    "ended behind the answer": [checkin(), _YES, report(), [_TAKEN, Over(Cancelled("any"))]],
    "rejected, then ended": [checkin(), _NO, Over(None)],
    "rejected with an ack": [checkin(ack=True), _NO, _HALF],
    "a report of another round": [checkin(), _YES, report(phase="phase-2")],
    "a report of another population": [checkin(), _YES, report(population="other")],
    "a failed report": [checkin(), _YES, report(b"", status_code=13), _TAKEN, _HALF],
    "events in the report": [checkin(), _YES, report(serialized_train_event=[{"type_url": "a/b"}] * 3), _TAKEN],
    "too many events": [checkin(), _YES, report(serialized_train_event=[{"type_url": "a/b"}] * 6)],
    "long events": [checkin(), _YES, report(serialized_train_event=[{"type_url": "a/b", "value": b"x" * 300}])],
    "no chunks": [checkin(protocol_options_request=options(supports_chunked_blob_transfer=False)), _YES, report(),
        _TAKEN],
    "no options": [checkin(protocol_options_request=pb.ProtocolOptionsRequest()), _YES, report(), _TAKEN],
    "no compression": [checkin(protocol_options_request=options(supported_compression_levels=[0])), _YES, report(),
        _TAKEN],
    "unknown levels": [checkin(protocol_options_request=options(supported_compression_levels=[9, 1])), _YES,
        report(), _TAKEN],
    "downloads": [checkin(protocol_options_request=options(supports_http_download=True)), _YES, report(), _TAKEN],
    "downloads of eligibility": [
        trying(protocol_options_request=options(supports_eligibility_eval_http_download=True)), checkin(weights=[]),
    ],
    "no gzip": [checkin(protocol_options_request=options(supports_http_download=True,
        supported_http_compression_formats=[])), _YES],
    "no secure aggregation": [checkin(protocol_options_request=options(secagg=False)), Accepted(SECURE_OFFER)],
    "a long report": [checkin(), _YES, report(_RANDOM), _TAKEN, _HALF],
    "too long a report": [checkin(), _YES, report(_RANDOM * 3)],
    "pieces before the options": [_Forced(start(10, 0, 10))],
    "a piece that was not asked for": [checkin(), _YES, _Forced(data(0, b"x"))],
    "an ack of nothing": [checkin(), _YES, _Forced(ack(7))],
    "an end of nothing": [checkin(), _YES, _Forced(end(1))],
    "pieces out of order": [checkin(), _YES, _Forced(start(10, 0, 10), data(1, b"x" * 5))],
    "too few pieces": [checkin(), _YES, _Forced(start(10, 0, 10), data(0, b"x" * 5), end(1))],
    "too many bytes": [checkin(), _YES, _Forced(start(3, 0, 3), data(0, b"x" * 5))],
    "a level that was not agreed on": [checkin(), _YES, _Forced(start(3, 3, 3))],
    "pieces that are no message": [checkin(), _YES, _Forced(start(3, 0, 3), data(0, b"\xff\xff\xff"), end(1))],
    "a start twice": [checkin(), _YES, _Forced(start(3, 0, 3), start(3, 0, 3))],
    "too large a start": [checkin(), _YES, _Forced(start(1 << 30, 0, 1 << 30))],
    "an empty piece": [checkin(), _YES, _Forced(chunk())],
    "half a message": [checkin(), _YES, _Forced(start(10, 0, 10), data(0, b"x" * 5)), _HALF],
    "no room": [checkin(), _YES, _Trouble("room"), report(b"x" * 500), Resume(), _TAKEN],
    "no entry": [_Trouble("windows", StatusError(Status.NOT_FOUND, "no such population")), checkin()],
    "no checkin": [_Trouble("check_in", StatusError(Status.UNAVAILABLE, "drains")), checkin()],
    "no report": [checkin(), _YES, _Trouble("report", StatusError(Status.ABORTED, "the round is closed")), report()],
    "no eligibility": [_Trouble("eligibility", StatusError(Status.INTERNAL, "x")), trying()],
    "secure": [
        checkin(), Accepted(SECURE_OFFER), secure("advertise_keys"), _asks("share_keys_request"),
        secure("share_keys_response"),
        _asks("masked_input_request"), masked(), _asks("unmasking_request"), secure("unmasking_response"), _TAKEN,
        _HALF,
    ],
    "secure in a plain round": [checkin(), _YES, secure("advertise_keys")],
    "a plain report in a secure round": [checkin(), Accepted(SECURE_OFFER), report(phase="phase-2")],
    "secure, then it gives up": [checkin(), Accepted(SECURE_OFFER), secure("abort", diagnostic_info="no"), _HALF],
    "secure, the server gives up": [checkin(), Accepted(SECURE_OFFER), _asks("abort"), _HALF],
    "secure, too early": [checkin(), Accepted(SECURE_OFFER), masked()],
    "mail that failed": [Answered("mail", Cancelled("x"))],
}  # fmt: skip

_SMALL = DeviceSettings(
    chunk_bytes=256,
    max_pending=2,
    level=0,
    message_bytes=16_000,
    whole_bytes=2000,
    ignored=5,
    events=5,
    event_bytes=200,
)


def scenarios() -> dict[str, Scenario]:
    """Talks of devices with and without an eligibility task; then rounds, and populations."""
    made: dict[str, Scenario] = {}
    for name, acts in _TALKS.items():
        made[f"talk: {name}"] = _talk(acts, task=TASK if "ligib" in name or "task" in name else None)
        if isinstance(acts[0], pb.ClientStreamMessage) and acts[0].HasField("eligibility_eval_checkin_request"):
            made[f"talk, no eligibility task: {name}"] = _talk(acts)
            made[f"talk, refused eligibility: {name}"] = _talk(acts, task=Rejected("incompatible"))
    for name in ("a report", "a long report", "secure", "with an ack"):
        made[f"talk by default: {name}"] = _talk(_TALKS[name], settings=DeviceSettings())
    made |= {f"round: {name}": _aggregated(acts) for name, acts in _rounds().items()}
    return made | populations.scenarios()


def _talk(acts: Sequence[Any], *, task: Any = None, settings: DeviceSettings = _SMALL) -> Scenario:
    def scenario(trace: Trace) -> None:
        coordinator = NotedCoordinator(msgspec.structs.replace(task, forms={}) if hasattr(task, "forms") else task)
        talk = Talk(coordinator, metadata=Headers({"a": "b"}), settings=settings)
        trace.write(f"begins {trace.shown(talk.steps)}")
        talk.session = trace.session(
            talk.session, reads=pb.ClientStreamMessage.FromString, writes=pb.ServerStreamMessage.FromString
        )  # type: ignore[assignment]
        talk.hear_frames(talk.session.receive)
        noted = 0
        for act in acts:
            _do(talk, act)
            for name, value in coordinator.noted[noted:]:
                trace.write(f"desk {name} {trace.shown(value)}")
            noted = len(coordinator.noted)
        trace.write(
            f"bytes {coordinator.bytes} asked {coordinator.asked} awaits {talk.awaits} ignored {talk.session.ignored}"
        )

    return scenario


def _do(talk: Talk, act: Any) -> None:
    if talk.close is not None:
        return
    if isinstance(act, pb.ClientStreamMessage):
        talk.say(act)
    elif act is _HALF:
        talk.half_close()
    elif isinstance(act, _Forced):
        talk.force(*act.messages)
    elif isinstance(act, _Trouble):
        talk.coordinator.allows = act.error is not None
        if act.error is not None:
            talk.coordinator.error[act.what] = act.error
    elif isinstance(act, Answered):
        talk.bring(act)
    elif isinstance(act, Accepted):
        talk.tell(Accepted(msgspec.structs.replace(act.offer, forms={})))
    else:
        talk.tell(*(act if isinstance(act, list) else [act]))


# The function of a round.


class _Hears:
    """Writes down what a round is told."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def taken(self, ordinal: int) -> None:
        self._trace.write(f"  taken {ordinal}")

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        self._trace.write(f"  finished {self._trace.shown(checkpoint)} {self._trace.shown(error)}")


def _fed(ordinal: int, size: int = 1) -> Report:
    return Report(ordinal, Message(b"%d" % ordinal * size, Headers({"ordinal": str(ordinal)}), CHECKPOINT))


def _rounds() -> dict[str, list[Any]]:
    given = Emitted("round", 0, Message(b"sum", EMPTY, CHECKPOINT))
    many = [_fed(number) for number in range(40)]
    wants = [Wants("round", 0)] * 3
    return {
        "three reports": [Begin(), *many[:3], Wants("round", 0), Enough(), given, Finished("round")],
        "forty reports": [Begin(), *many, *wants, Enough(), *wants, given, Finished("round")],
        "reports before it begins": [*many[:3], Begin(), Enough()],
        "no reports": [Begin(), Enough(), given, Finished("round")],
        "ends early": [Begin(), *many[:3], given, Finished("round"), _fed(4), Enough()],
        "fails": [Begin(), *many[:3], Finished("round", FunctionError("boom")), _fed(4)],
        "gives nothing": [Begin(), Enough(), Finished("round")],
        "gives twice": [Begin(), Enough(), given, given, Finished("round")],
        "gives another type": [
            Begin(),
            Enough(),
            Emitted("round", 0, Message(b"x", EMPTY, "text/plain")),
            Finished("round"),
        ],
        "is abandoned": [
            Begin(),
            *many[:3],
            Abandon(DeadlineExceeded("late")),
            Finished("round", DeadlineExceeded("late")),
            _fed(4),
        ],
        "is abandoned before it begins": [Abandon(Cancelled("x"))],
        "waits": [Begin(), *many[:20], Wants("round", 0, waits=True), Wants("round", 1), Enough(), Enough()],
        "half-closed": [Begin(), HALF_CLOSE, _fed(0)],
    }


def _aggregated(acts: Sequence[Any]) -> Scenario:
    def scenario(trace: Trace) -> None:
        for model in (None, b"model"):
            session = AggregatingSession(_Hears(trace), "sum", model, Headers({"task": "t"}))
            recorded = trace.session(session)
            for act in acts:
                play(recorded, [act])
                trace.write(f"  stalled {trace.shown(session.stalled)} hears {session.hears_waits} held {session.held}")

    return scenario
