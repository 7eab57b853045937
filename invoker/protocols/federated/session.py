"""`DeviceSession`: the conversation with one device, in which it checks in, gets its task and reports.

::

    state      the client may send                          is left for
    ---------  -------------------------------------------  ----------------------------------------------------------
    START      a checkin of either kind                     TRYING, FREE, WAITING or DONE
    TRYING     a checkin: it has run the eligibility task   WAITING
    FREE       a checkin: there is no eligibility task      WAITING
    WAITING    nothing, while the coordinator decides       ACCEPTED, SECURE or DONE, by a notice
    ACCEPTED   its report                                   TAKING
    SECURE     messages of secure aggregation               DONE, by a notice
    TAKING     nothing, while the round takes the report    DONE, by a notice
    DONE       nothing                                      the end: it half-closes, or a time limit passes

In each state the client may also send chunks, which `ChunkStream` joins into messages, and messages without content,
which are counted (F-011). Any other message ends this conversation with INVALID_ARGUMENT. If a client half-closes
before its report, the conversation ends with OK and its place is free (F-012); a client that half-closes after its
report still gets the answer.

The session keeps one `Await` for its mailbox. The end of the conversation always cancels this wait, and the mailbox
then notifies the coordinator; so the session never calls ``leave``.

Source: section 2 of the catalogue of federated compute.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.codecs.chunks import ChunkStream, Incoming, Limits
from invoker.core.steps import Answered, Await, Close, Event, Step
from invoker.errors import InvocationError, LimitExceeded
from invoker.message import EMPTY, Headers
from invoker.protocols.federated import answers
from invoker.protocols.federated.forms import form_of_eligibility, form_of_offer
from invoker.protocols.federated.messages import (
    Accepted,
    Checkin,
    Coordinator,
    Mailbox,
    Notice,
    Offer,
    Over,
    Rejected,
    ReportIn,
    ReportTaken,
    Resume,
    Secure,
    Window,
)
from invoker.protocols.federated.negotiation import DeviceSettings, options_for, terms_for
from invoker.protocols.federated.outgoing import Outgoing, Pack
from invoker.protocols.federated.reading import AnyCheckin, check_same, checkin_of, invalid, parsed, report_of

_MAIL: Final = "mail"
_UNPACKED: Final = "unpacked"

_CROSSING: Final = ("unmasking_response", "abort")

OUTSIDE_BYTES: Final = 65 * 1024
"""The largest frame, in bytes, from a client that is not in a round; parsing it takes some milliseconds."""


class State(enum.Enum):
    """The states of a conversation; the value says which messages are expected."""

    START = "a checkin is expected first"
    TRYING = "a checkin is expected after an eligibility task"
    FREE = "a checkin is expected next, since there is no eligibility task"
    WAITING = "nothing is expected until the checkin is decided"
    ACCEPTED = "the report is expected next"
    SECURE = "messages of secure aggregation are expected"
    TAKING = "nothing is expected after the report"
    DONE = "nothing is expected after the last answer"


class DeviceSession:
    """The conversation with one device.

    Args:
        coordinator: Decides about checkins and reports.
        mailbox: The queue of the coordinator's notices.
        metadata: The metadata of the rpc.
        settings: The limits and choices of the server.
        pack: Compresses and inflates large messages in a thread; None: this is done at once.

    Attributes:
        state: The state of the conversation.
        ignored: How many messages without content have come.
        is_closed: Whether the conversation has ended.
    """

    __slots__ = (
        "_awaits_mail", "_checkin", "_has_acked", "_has_begun", "_has_unmasked", "_is_half_closed", "_may_cross",
        "_metadata", "_moved", "_offer", "_out", "_pack", "_stream", "_unheard", "_unpacks", "_windows", "coordinator",
        "ignored", "is_closed", "mailbox", "settings", "state",
    )  # fmt: skip

    def __init__(
        self,
        coordinator: Coordinator,
        mailbox: Mailbox,
        metadata: Headers = EMPTY,
        settings: DeviceSettings | None = None,
        *,
        pack: Pack | None = None,
    ) -> None:
        self.coordinator, self.mailbox = coordinator, mailbox
        self.settings = settings or DeviceSettings()
        self.state = State.START
        self.ignored = 0
        self.is_closed = False
        self._metadata = metadata
        self._has_begun = self._is_half_closed = self._has_acked = self._has_unmasked = False
        self._may_cross = False
        self._checkin: Checkin | None = None
        self._windows: tuple[Window, Window] | None = None
        self._offer: Offer | None = None
        self._awaits_mail = False
        self._unheard: list[Notice] = []
        self._moved = (0, 0)
        self._stream = ChunkStream(
            parse=parsed,
            writes=pb.ServerStreamMessage,
            limits=Limits(message_bytes=self.settings.message_bytes),
            whole_bytes=self.settings.chunk_bytes,
            may_receive=partial(coordinator.may_receive, self),
            unpacks_aside=pack is not None,
        )
        self._pack, self._unpacks = pack, False
        self._out = Outgoing(self._stream, self.settings, pack)

    # The methods of `Session`.

    def begin(self) -> Sequence[Step]:
        """Enter the coordinator, and wait for notices from now on, even before the first frame. Idempotent."""
        if self._has_begun or self.is_closed:
            return ()
        self._has_begun = True
        try:
            self.coordinator.enter(self, self._metadata)
        except InvocationError as error:
            return self._end(error)
        return self._told()

    def receive(self, frame: bytes) -> Sequence[Step]:
        """Translate one frame of the device; an error ends the conversation with its status."""
        steps = list(self.begin())
        if self.is_closed or self._is_half_closed:
            return steps
        stream = self._stream
        was_receiving = stream.is_receiving
        try:
            if len(frame) > OUTSIDE_BYTES and self.state not in (State.ACCEPTED, State.SECURE):
                raise LimitExceeded(
                    f"a client that takes no part in a round sent {len(frame)} bytes, which exceeds the "
                    f"limit of {OUTSIDE_BYTES} bytes"
                )
            for message in stream.receive(frame):
                self._take(message)
            if was_receiving and not stream.is_receiving:
                self.coordinator.received(self)
        except InvocationError as error:
            return (*steps, *self._end(error))
        return (*steps, *self._told())

    def half_close(self) -> Sequence[Step]:
        """Translate the half-close of the client; the conversation ends unless an answer is due."""
        steps = list(self.begin())
        if self.is_closed:
            return steps
        self._is_half_closed = True
        if self.state is State.START:
            return (*steps, *self._end(invalid("the conversation has no checkin")))
        return (*steps, *self._leave())

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate notices, or continue after a large message was packed or unpacked."""
        if self.is_closed or type(event) is not Answered:
            return ()
        if isinstance(event.value, InvocationError):
            return self._end(event.value)
        if event.key == _MAIL:
            self._awaits_mail = False
            self._unheard += event.value
        elif event.key != _UNPACKED:
            self._out.packed(event.value)
        try:
            if event.key == _UNPACKED:
                self._unpacks = False
                self._resume(self._stream.unpacked(event.value))
            while self._unheard and not self._out.is_packing:
                notice = self._unheard.pop(0)
                if type(notice) is Over:
                    return (*self._out.steps(), *self._end(None if self.state is State.DONE else notice.error))
                self._heed(notice)
        except InvocationError as error:
            return self._end(error)
        if self._is_half_closed and (ending := self._leave()):
            return (*self._out.steps(), *ending)
        return self._told()

    def release(self) -> None:
        """Drop the model of the round, and break cycles, after the conversation has ended.

        The objects are then freed at once, without the garbage collector.
        """
        self.is_closed = True
        self._offer = None
        self._stream.forget()

    def _leave(self) -> Sequence[Step]:
        """End the conversation of a client that has half-closed, unless an answer is due."""
        if self._stream.is_held or self.state is State.TAKING or self._has_unmasked:
            return ()
        try:
            self._stream.ended()
        except InvocationError as error:
            return self._end(error)
        # Chunks that wait for an ack are not waited for, since no ack can come.
        return self._end(None)

    # Messages of the client.

    def _take(self, message: pb.ClientStreamMessage) -> None:
        kind = message.WhichOneof("kind")
        secure = message.secure_aggregation_client_message
        if secure.WhichOneof("message_content") is None:
            if kind is None:
                self._ignore()
                return
        elif self._may_cross and kind is None and secure.WhichOneof("message_content") in _CROSSING:
            self._may_cross = False
            return
        elif self.state is not State.SECURE:
            raise invalid(f"a message of secure aggregation came, but {self.state.value}")
        if self.state is State.SECURE and kind in (None, "report_request"):
            self._take_secure(message, secure)
        elif kind == "report_request" and self.state is State.ACCEPTED:
            self.state = State.TAKING
            self.coordinator.report(self, self._report(message.report_request))
        elif kind == "eligibility_eval_checkin_request" and self.state is State.START:
            self._try(message.eligibility_eval_checkin_request)
        elif kind == "checkin_request" and self.state in (State.START, State.TRYING, State.FREE):
            self._check_in(message.checkin_request)
        else:
            raise invalid(f"a message of the kind {kind} came, but {self.state.value}")

    def _ignore(self) -> None:
        self.ignored += 1
        if self.ignored > self.settings.ignored:
            raise invalid(f"more than {self.settings.ignored} messages had no content")

    def _try(self, request: pb.EligibilityEvalCheckinRequest) -> None:
        checkin = self._enter(request)
        task = self.coordinator.eligibility(self, checkin)
        if task is not None and not isinstance(task, Rejected):
            self.state = State.TRYING
            self._out.send_form(form_of_eligibility(task, checkin.can, self._stream.terms))
            return
        response = pb.EligibilityEvalCheckinResponse(protocol_options_response=options_for(self._stream.terms))
        if task is None:
            self.state = State.FREE
            response.no_eligibility_eval_configured.SetInParent()
        else:
            self.state = State.DONE
            response.rejection_info.CopyFrom(answers.rejection(self._untold(1)))
        self._out.send(pb.ServerStreamMessage(eligibility_eval_checkin_response=response))

    def _check_in(self, request: pb.CheckinRequest) -> None:
        checkin = self._enter(request)
        self.state = State.WAITING
        self.coordinator.check_in(self, checkin)

    def _enter(self, request: AnyCheckin) -> Checkin:
        """Parse a checkin, ack it if the client asks for that (F-002 to F-005), and set the terms."""
        checkin = checkin_of(request, self._metadata)
        if self._checkin is not None:
            check_same(self._checkin, checkin)
            if not request.HasField("protocol_options_request"):
                checkin = msgspec.structs.replace(checkin, can=self._checkin.can)
        self._checkin = checkin
        if self._windows is None or checkin.can.wants_ack:
            self._windows = self.coordinator.windows(self, checkin)
        if checkin.can.wants_ack:
            self._has_acked = True
            self._out.send(answers.ack(self._windows))
        # The response that follows contains the terms, and may already need them.
        self._stream.agree(terms_for(checkin.can, self.settings))
        return checkin

    def _report(self, request: pb.ReportRequest) -> ReportIn:
        """Parse a report, and check that it belongs to this conversation (F-017)."""
        offer, checkin = self._offer, self._checkin
        assert offer is not None
        assert checkin is not None
        if request.population_name != checkin.population:
            raise invalid(f"the report is of the population {request.population_name!a}, not {checkin.population!a}")
        if request.execution_phase_id != offer.phase_id:
            raise invalid("the report is of another round: its execution_phase_id is not that of this conversation")
        return report_of(request, self.settings)

    def _take_secure(self, message: pb.ClientStreamMessage, secure: secagg_pb.ClientToServerWrapperMessage) -> None:
        """Pass on a message of secure aggregation.

        The masked input must come with the report; no other message may come with it (F-093).
        """
        is_masked = secure.WhichOneof("message_content") == "masked_input_response"
        if is_masked != (message.WhichOneof("kind") == "report_request"):
            raise invalid(
                "the masked input and the report must come in one message, and nothing else may come with a report"
            )
        self._has_unmasked = secure.WhichOneof("message_content") == "unmasking_response"
        self.coordinator.secure(self, secure, self._report(message.report_request) if is_masked else None)

    # Notices of the coordinator.

    def _heed(self, notice: Notice) -> None:
        if type(notice) is Resume:
            self._resume(self._stream.resume())
        elif type(notice) is Secure:
            if self.state is State.SECURE:
                message = pb.ServerStreamMessage(secure_aggregation_server_message=notice.message)
                # not compressed, since keys and ciphertexts do not become smaller
                self._out.send(message, compresses=False)
        elif type(notice) is ReportTaken:
            if self.state in (State.TAKING, State.SECURE):
                # A client that was dropped may have sent a message before it got the notice.
                self._may_cross = self.state is State.SECURE and not self._has_unmasked
                self.state, self._has_unmasked = State.DONE, False
                self._out.send(answers.report_response(self._untold(0)))
        elif self.state is State.WAITING:
            self._decide(notice)

    def _resume(self, messages: Iterator[pb.ClientStreamMessage]) -> None:
        for message in messages:
            self._take(message)
            self.coordinator.received(self)

    def _decide(self, notice: Notice) -> None:
        assert self._checkin is not None
        terms = self._stream.terms
        if isinstance(notice, Accepted):
            self._offer = notice.offer
            self.state = State.ACCEPTED if notice.offer.secagg is None else State.SECURE
            self._out.send_form(form_of_offer(notice.offer, self._checkin.can, terms))
            return
        self.state = State.DONE
        response = pb.CheckinResponse(protocol_options_response=options_for(terms))
        response.rejection_info.CopyFrom(answers.rejection(self._untold(1)))
        self._out.send(pb.ServerStreamMessage(checkin_response=response))

    # Sending.

    def _untold(self, which: int) -> Window | None:
        """The retry window for clients that got no ack (F-059)."""
        return None if self._has_acked or self._windows is None else self._windows[which]

    def _told(self) -> list[Step]:
        """The steps that are due, after all notices and messages."""
        steps = self._out.steps()
        self._count()
        if not self._awaits_mail:
            self._awaits_mail = True
            steps.append(Await(_MAIL, self.mailbox.next))
        packed = self._stream.packed
        if packed is not None and not self._unpacks:
            assert self._pack is not None
            self._unpacks = True
            steps.append(Await(_UNPACKED, partial(self._pack, object(), partial(_unpacked, packed))))
        return steps

    def _count(self) -> None:
        """Report to the coordinator the bytes that were sent and received since the last call (F-141)."""
        sent, received = self._stream.sent - self._moved[0], self._stream.received - self._moved[1]
        if sent or received:
            self._moved = (self._stream.sent, self._stream.received)
            self.coordinator.moved(self, sent=sent, received=received)

    def _end(self, error: InvocationError | None) -> Sequence[Step]:
        self.is_closed = True
        self._count()
        return (Close(error),)


def _unpacked(packed: Incoming) -> pb.ClientStreamMessage | InvocationError:
    """Inflate and parse a message; returns an error that ends the conversation if this fails."""
    try:
        return parsed(packed.unpack())
    except InvocationError as error:
        return error
