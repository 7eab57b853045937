"""The calls and notices between the session of a device and the coordinator.

A `DeviceSession` translates one conversation on the wire. It calls the `Coordinator`, and gets answers as *notices* in
its `Mailbox`, since a decision may take a minute and concern all devices of a round at once. Neither waits for the
other::

    the session calls      the coordinator answers with
    ---------------------  ----------------------------------------------------------------------
    eligibility            the return value
    check_in               `Accepted` or `Rejected`, at once or when the round is decided
    report                 `ReportTaken`, after the round has taken the report; or `Over`
    secure                 any number of `Secure`, and then `ReportTaken` or `Over`
    leave                  nothing; the coordinator removes the device, in any stage

`Over` may come at any time. It ends the conversation with a status: a time limit was reached, the round failed or
closed before the report came, or the process drains.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.codecs.chunks import Packed
from invoker.errors import InvocationError
from invoker.message import EMPTY, Headers


class Capabilities(msgspec.Struct, frozen=True):
    """The capabilities of a client, from its ProtocolOptionsRequest.

    Attributes:
        chunks: Whether it can send and receive messages in chunks.
        levels: The numbers of the compression levels that it offers.
        secagg: Whether it offers the variant NATIVE_V1 of secure aggregation (F-088).
        wants_ack: Whether it asks for a CheckinRequestAck (F-002).
        http: Whether it can download the plan and the checkpoint of a task.
        eligibility_http: Whether it can download the plan and the checkpoint of an eligibility task.
        gzip: Whether its downloads may be compressed by gzip.
    """

    chunks: bool = False
    levels: tuple[int, ...] = ()
    secagg: bool = False
    wants_ack: bool = False
    http: bool = False
    eligibility_http: bool = False
    gzip: bool = False


class Checkin(msgspec.Struct, frozen=True):
    """A checkin of a client, of either kind.

    Attributes:
        population: The name of the population.
        retry_token: The retry token; empty: none.
        attestation: The attestation measurement, which is opaque.
        client_version: The client version.
        can: The capabilities of the client.
        weights: The weights of the tasks for which the client is eligible, by name; None: the client sends none.
        weights_version: The version of TaskEligibilityInfo, which defines the meaning of the weights.
        metadata: The metadata of the conversation.
    """

    population: str
    retry_token: str = ""
    attestation: str = ""
    client_version: str = ""
    can: Capabilities = Capabilities()
    weights: Mapping[str, float] | None = None
    weights_version: int = 1
    metadata: Headers = EMPTY


class Window(msgspec.Struct, frozen=True):
    """The retry window of a client, in seconds from now, with the token that it should send (F-054 to F-056)."""

    delay_min_s: float
    delay_max_s: float
    token: str = ""


class Resource(msgspec.Struct, frozen=True):
    """The addresses at which a client can download a blob.

    Attributes:
        uri: The URI of the uncompressed bytes.
        gzip_uri: The URI of the bytes, compressed by gzip.
        cache_id: A hash of the content; empty: the content must not be cached (F-067).
        max_age_s: For how many seconds it may be cached.
    """

    uri: str
    gzip_uri: str
    cache_id: str = ""
    max_age_s: float = 0.0


class Blob(msgspec.Struct, frozen=True, weakref=True):
    """A plan or a checkpoint: its bytes, and its addresses for downloads; None: it cannot be downloaded (F-065).

    The bytes can be downloaded while an object refers to the blob, such as the round that offers it.
    """

    data: bytes
    resource: Resource | None = None


class SecAggTerms(msgspec.Struct, frozen=True):
    """The terms of secure aggregation of a task (F-089 to F-092).

    Attributes:
        vectors: The modulus and the length, in elements, of each vector, by name.
        expected: The largest number of clients in a round.
        threshold: How many clients must stay until the end, so that the sum can be unmasked.
        min_visible: The smallest number of clients whose sum may be seen.
    """

    vectors: Mapping[str, tuple[int, int]]
    expected: int
    threshold: int
    min_visible: int


class Offer(msgspec.Struct, frozen=True):
    """The data for an accepted client.

    Attributes:
        phase_id: The id of the round; it is the same for all its clients (F-048).
        task: The name of the task.
        plan: The plan for the device.
        checkpoint: The checkpoint from which the device starts.
        secagg: The terms of secure aggregation; None: the report is plain.
        select_uri: The template of URIs for federated select; empty: none.
        forms: The encoded forms of the offer, each of which is made once for all clients.
    """

    phase_id: str
    task: str
    plan: Blob
    checkpoint: Blob
    secagg: SecAggTerms | None = None
    select_uri: str = ""
    forms: dict[Hashable, Packed] = msgspec.field(default_factory=dict)


class Eligibility(msgspec.Struct, frozen=True):
    """The eligibility task of a population.

    Attributes:
        execution_id: The id of this eligibility task, which reveals nothing about the client (F-048).
        plan: The plan that determines for which tasks a device is eligible.
        checkpoint: The checkpoint for the plan.
        spec: The population's eligibility specification, which is opaque; empty: none.
        forms: See `Offer`.
    """

    execution_id: str
    plan: Blob
    checkpoint: Blob
    spec: bytes = b""
    forms: dict[Hashable, Packed] = msgspec.field(default_factory=dict)


class ReportIn(msgspec.Struct, frozen=True):
    """The report of a client.

    Attributes:
        update: The update, as bytes that only the function decodes.
        status: A google.rpc.Code; 0 is OK.
        duration_s: How many seconds the plan ran, if the client reports it.
    """

    update: bytes
    status: int = 0
    duration_s: float | None = None


# Notices, which the coordinator sends to a session.


class Accepted(msgspec.Struct, frozen=True):
    """The client takes part in a round."""

    offer: Offer


class Rejected(msgspec.Struct, frozen=True):
    """The client does not take part; ``reason`` is a word for logs and metrics, such as ``full``."""

    reason: str


class ReportTaken(msgspec.Struct, frozen=True):
    """The round has taken the report, or has counted it as failed."""


class Secure(msgspec.Struct, frozen=True):
    """A message of secure aggregation for the client."""

    message: secagg_pb.ServerToClientWrapperMessage


class Over(msgspec.Struct, frozen=True):
    """The conversation ends with the status of this error.

    None: it ends with OK, because the client did not half-close in time (F-015).
    """

    error: InvocationError | None


class Resume(msgspec.Struct, frozen=True):
    """The client may continue the message for which `Coordinator.may_receive` returned False."""


Notice: TypeAlias = Accepted | Rejected | ReportTaken | Secure | Resume | Over


class Mailbox(Protocol):
    """A queue of notices for one session, which the service makes; it ends with the conversation."""

    def put(self, notice: Notice) -> None:
        """Add a notice, which the session gets in a later turn of the event loop."""

    def next(self) -> Awaitable[Sequence[Notice]]:
        """Wait for notices, and remove all of them from the queue."""


class Verdict(enum.Enum):
    """The result of verifying a retry token (F-054, F-055)."""

    ABSENT = "there is none, or it is forged, expired or of another population, which is the same as none"
    EARLY = "it is used before its window begins"
    IN_WINDOW = "it is used within its window"


class Tokens(Protocol):
    """Makes and verifies retry tokens; tokens use the time of day, since they outlive the process."""

    def make(self, population: str, delay_min_s: float, delay_max_s: float) -> str:
        """Make a signed token for a window, whose begin and end are in seconds from now."""

    def judge(self, population: str, token: str) -> Verdict:
        """Verify a client's token; never raises."""


class Device(Protocol):
    """The part of a session that the coordinator uses."""

    mailbox: Mailbox


class Coordinator(Protocol):
    """The coordinator's methods for sessions; all are called on one event loop, and none waits."""

    def enter(self, device: Device, metadata: Headers) -> None:
        """Begin a conversation, and the time limit of its first message (F-014).

        Raises:
            LimitExceeded: There are too many conversations, in total or from this peer (F-139).
            ShuttingDown: The process drains (F-143).
            StatusError: The API key is wrong (UNAUTHENTICATED, F-007).
        """

    def windows(self, device: Device, checkin: Checkin) -> tuple[Window, Window]:
        """The retry windows after an acceptance and after a rejection.

        Raises:
            StatusError: There is no such population (NOT_FOUND, F-005), or the metadata name another one (F-006).
        """

    def eligibility(self, device: Device, checkin: Checkin) -> Eligibility | Rejected | None:
        """The eligibility task; None: the population has none (F-040)."""

    def check_in(self, device: Device, checkin: Checkin) -> None:
        """Wait for a round; answered by `Accepted` or `Rejected`."""

    def report(self, device: Device, report: ReportIn) -> None:
        """Pass on a plain report; answered by `ReportTaken` or `Over` (F-016)."""

    def secure(self, device: Device, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Pass on a message of secure aggregation; ``report`` came in the same frame (F-093).

        Answered by `Secure`, `ReportTaken` or `Over`.
        """

    def moved(self, device: Device, *, sent: int, received: int) -> None:
        """Count bytes that the chunk layer has sent and received (F-141)."""

    def may_receive(self, device: Device, size: int, upto: int) -> bool:
        """Whether ``upto`` bytes of a message of ``size`` may be received.

        If not, the session stops reading until `Resume`.

        The number of large messages at once is limited, so that memory is bounded (F-081).
        """

    def received(self, device: Device) -> None:
        """Report that a message of `may_receive` was received and handled."""

    def leave(self, device: Device) -> None:
        """Remove a device whose conversation has ended, which frees its place (F-012, F-013). Idempotent."""
