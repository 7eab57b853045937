"""A coordinator that writes down what sessions ask it, with a mailbox, and a client that writes frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Limits, Terms
from invoker.core.steps import Answered, Await, Close, Send, Step
from invoker.errors import InvocationError
from invoker.message import EMPTY, Headers
from invoker.protocols.federated.messages import (
    Blob,
    Checkin,
    Device,
    Eligibility,
    Notice,
    Offer,
    Rejected,
    ReportIn,
    Resource,
    SecAggTerms,
    Window,
)
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.outgoing import Pack
from invoker.protocols.federated.session import DeviceSession

PLAN = Blob(b"the plan", Resource("https://x/plan", "https://x/plan.gz", "plan-hash", 60.0))
MODEL = Blob(b"the model", Resource("https://x/model", "https://x/model.gz"))
OFFER = Offer("phase-1", "train", PLAN, MODEL)
SECURE_OFFER = Offer("phase-2", "train", PLAN, MODEL, SecAggTerms({"w": (1 << 20, 3), "b": (5, 1)}, 9, 5, 4))
TASK = Eligibility("execution-1", PLAN, MODEL, b"spec")
WINDOWS = (Window(10.0, 20.5, "for the accepted"), Window(1.0, 2.0, "for the rejected"))


class NotedCoordinator:
    """Answers as it was told to, and notes what it is asked."""

    def __init__(self, task: Eligibility | Rejected | None = None) -> None:
        self.task = task
        self.noted: list[tuple[str, Any]] = []
        self.error: dict[str, InvocationError] = {}
        self.allows = True
        self.asked: list[int] = []
        self.bytes = [0, 0]

    def _note(self, name: str, value: Any) -> None:
        self.noted.append((name, value))
        if name in self.error:
            raise self.error[name]

    def names(self) -> list[str]:
        """What was asked, in order."""
        return [name for name, _ in self.noted]

    def enter(self, device: Device, metadata: Headers) -> None:
        self._note("enter", metadata)

    def windows(self, device: Device, checkin: Checkin) -> tuple[Window, Window]:
        self._note("windows", checkin)
        return WINDOWS

    def eligibility(self, device: Device, checkin: Checkin) -> Eligibility | Rejected | None:
        self._note("eligibility", checkin)
        return self.task

    def check_in(self, device: Device, checkin: Checkin) -> None:
        self._note("check_in", checkin)

    def report(self, device: Device, report: ReportIn) -> None:
        self._note("report", report)

    def secure(self, device: Device, message: Any, report: ReportIn | None) -> None:
        self._note("secure", (message.WhichOneof("message_content"), report))

    def moved(self, device: Device, *, sent: int, received: int) -> None:
        self.bytes[0] += sent
        self.bytes[1] += received

    def may_receive(self, device: Device, size: int, upto: int) -> bool:
        self.asked.append(upto)
        self._note("may_receive", size)
        return self.allows

    def received(self, device: Device) -> None:
        self._note("received", None)

    def leave(self, device: Device) -> None:
        self._note("leave", None)


class NoMailbox:
    """Nobody awaits it: tests give notices themselves."""

    def put(self, notice: Notice) -> None:
        raise AssertionError(f"nobody puts anything here: {notice}")

    async def next(self) -> Sequence[Notice]:
        raise AssertionError("nobody awaits this")


class Talk:
    """A conversation: a session, and a client that takes chunks and acks them.

    Attributes:
        heard: Messages of the server.
        close: The Close; None while there is none.
        steps: All of them.
    """

    def __init__(
        self,
        coordinator: NotedCoordinator | None = None,
        *,
        metadata: Headers = EMPTY,
        settings: DeviceSettings | None = None,
        pack: Pack | None = None,
    ) -> None:
        self.coordinator = coordinator or NotedCoordinator()
        self.session = DeviceSession(self.coordinator, NoMailbox(), metadata, settings, pack=pack)
        self.client = ChunkStream(
            parse=pb.ServerStreamMessage.FromString, writes=pb.ClientStreamMessage, limits=Limits(chunk_bytes=2**22)
        )
        self.heard: list[pb.ServerStreamMessage] = []
        self.steps: list[Step] = []
        self.close: Close | None = None
        self.awaits = 0
        self._receive: Callable[[bytes], Iterable[Step]] = self.session.receive
        self._do(self.session.begin())

    def hear_frames(self, receive: Callable[[bytes], Iterable[Step]]) -> None:
        """Give the client's frames to this from now on."""
        self._receive = receive

    def say(self, *messages: pb.ClientStreamMessage) -> list[str]:
        """Send messages, carry what follows, and give the kinds of the server's messages by then."""
        before = len(self.heard)
        for message in messages:
            self.client.send(message.SerializeToString())
            self._carry()
        return [shown(one) for one in self.heard[before:]]

    def force(self, *messages: pb.ClientStreamMessage) -> None:
        """Send frames as a client does that keeps to no rules, and reads no more."""
        for message in messages:
            if self.close is None:
                steps = self.session.receive(message.SerializeToString())
                self.steps += steps
                self.close = next((one for one in steps if isinstance(one, Close)), None)

    def tell(self, *notices: Notice) -> list[str]:
        """Bring notices, and give what the server says then."""
        assert self.awaits == 1
        self.awaits = 0
        before = len(self.heard)
        self.bring(Answered("mail", notices))
        return [shown(one) for one in self.heard[before:]]

    def bring(self, event: Answered) -> None:
        """Bring any answer, and carry what follows."""
        self._do(self.session.deliver(event))
        self._carry()

    def half_close(self) -> None:
        """The client sends no more."""
        self._do(self.session.half_close())

    @property
    def error(self) -> InvocationError:
        """What it has ended with."""
        assert self.close is not None, "it has not ended"
        assert self.close.error is not None, "it has ended with OK"
        return self.close.error

    def _carry(self) -> None:
        while frames := self.client.drain():
            for frame in frames:
                self._do(self._receive(frame))

    def _do(self, steps: Iterable[Step]) -> None:
        for step in steps:
            assert self.close is None, f"{step} behind the end"
            self.steps.append(step)
            if isinstance(step, Send):
                for message in self.client.receive(step.frame):
                    self._hear(message)
            elif isinstance(step, Close):
                self.close = step
            else:
                assert isinstance(step, Await)
                self.awaits += step.key == "mail"

    def _hear(self, message: pb.ServerStreamMessage) -> None:
        """Do as real clients do: the options of a response replace those from before, and an absent message none."""
        self.heard.append(message)
        kind = message.WhichOneof("kind") or ""
        if kind.endswith("checkin_response") and (body := getattr(message, kind)).HasField("protocol_options_response"):
            said = body.protocol_options_response
            self.client.agree(Terms(said.chunk_size_for_upload, said.max_pending_chunks, said.compression_level))


def shown(message: pb.ServerStreamMessage) -> str:
    """The kind of a message of the server, with what it has decided."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return f"secure {message.secure_aggregation_server_message.WhichOneof('message_content')}"
    assert not message.HasField("secure_aggregation_server_message")
    body = getattr(message, kind)
    return f"{kind} {body.WhichOneof('checkin_result')}" if "checkin_result" in body.DESCRIPTOR.oneofs_by_name else kind


def options(**given: Any) -> pb.ProtocolOptionsRequest:
    """What a client of today says that it can do; ``secagg`` False leaves that out."""
    secagg = given.pop("secagg", True)
    said = {
        "supports_chunked_blob_transfer": True,
        "supported_compression_levels": [0, 1, 2, 3],
        "supports_http_download": False,
        "supported_http_compression_formats": [1],
    }
    request = pb.ProtocolOptionsRequest(**(said | given))
    if secagg:
        request.side_channels.secure_aggregation.client_variant.append(2)
    return request


def trying(population: str = "iris", *, ack: bool = True, **fields: Any) -> pb.ClientStreamMessage:
    """An eligibility checkin."""
    fields.setdefault("protocol_options_request", options(should_ack_checkin=ack))
    request = pb.EligibilityEvalCheckinRequest(population_name=population, **fields)
    return pb.ClientStreamMessage(eligibility_eval_checkin_request=request)


def checkin(population: str = "iris", *, ack: bool = False, **fields: Any) -> pb.ClientStreamMessage:
    """A checkin; ``weights`` are pairs, ``version`` is theirs."""
    fields.setdefault("protocol_options_request", options(should_ack_checkin=ack))
    weights, version = fields.pop("weights", None), fields.pop("version", 1)
    request = pb.CheckinRequest(population_name=population, **fields)
    if weights is not None:
        request.task_eligibility_info.version = version
        for name, weight in weights:
            request.task_eligibility_info.task_weights.add(task_name=name, weight=weight)
    return pb.ClientStreamMessage(checkin_request=request)


def report(update: bytes = b"update", *, phase: str = "phase-1", population: str = "iris", **fields: Any) -> Any:
    """A report; ``fields`` are of the Report."""
    return pb.ClientStreamMessage(
        report_request=pb.ReportRequest(
            population_name=population,
            execution_phase_id=phase,
            report=pb.Report(update_checkpoint=update, **fields),
        )
    )
