"""The words between the session of a device and the coordinator of populations.

A `DeviceSession` translates one wire conversation. It asks the `Coordinator` by calling it, and gets answers as
*notices* in the session's `Mailbox`: a decision may take a minute, and may concern all devices of a round at once.
Neither waits for the other::

    session calls          the coordinator answers by
    ---------------------  ----------------------------------------------------------------------
    eligibility            its return value
    check_in               `Accepted` or `Rejected`, at once or when the round is decided
    report                 `ReportTaken`, when the round has taken the report; or `Over`
    secure                 `Secure`, any number of them; in the end `ReportTaken`, or `Over`
    leave                  nothing; the coordinator forgets the device, wherever it stood

`Over` may come at any time. It ends the conversation with a status, because a time limit has passed, the round has
failed or was closed before the report came, or the process drains.
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
    """The capabilities of a client, as its ProtocolOptionsRequest gives them.

    Attributes:
        chunks: Whether it can send and take messages in chunks.
        levels: Numbers of the compression levels that it offers.
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
        population: Its name.
        retry_token: The token as sent; empty: none.
        attestation: The attestation measurement, opaque.
        client_version: The value as sent.
        can: The capabilities of the client.
        weights: The weights of the tasks for which the client says that it is eligible, by name; None: the client does
            not say.
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
    """When a client should check in again: seconds from now, and the token that it should send (F-054 to F-056)."""

    delay_min_s: float
    delay_max_s: float
    token: str = ""


class Resource(msgspec.Struct, frozen=True):
    """Where a client can download a blob.

    Attributes:
        uri: The URI of the uncompressed bytes.
        gzip_uri: The URI of the bytes compressed by gzip.
        cache_id: Hash of the content; empty: it must not be cached (F-067).
        max_age_s: How long it may be cached.
    """

    uri: str
    gzip_uri: str
    cache_id: str = ""
    max_age_s: float = 0.0


class Blob(msgspec.Struct, frozen=True, weakref=True):
    """A plan or a checkpoint: its bytes, and its address for downloads; None: it has none (F-065).

    The bytes can be downloaded as long as an object refers to it, such as the round that offers it.
    """

    data: bytes
    resource: Resource | None = None


class SecAggTerms(msgspec.Struct, frozen=True):
    """The terms of secure aggregation of a task (F-089 to F-092).

    Attributes:
        vectors: The modulus and the length in elements of each vector, by its name.
        expected: The largest number of clients of a round.
        threshold: How many must survive, so that the rest can be unmasked.
        min_visible: The least number of clients whose sum may be seen.
    """

    vectors: Mapping[str, tuple[int, int]]
    expected: int
    threshold: int
    min_visible: int


class Offer(msgspec.Struct, frozen=True):
    """The data that an accepted client gets.

    Attributes:
        phase_id: The id of the round; it is the same for all its clients (F-048).
        task: Its name.
        plan: The plan that the device runs.
        checkpoint: The checkpoint that it starts from.
        secagg: Terms of secure aggregation; None: the report is plain.
        select_uri: Template of federated select; empty: none.
        forms: The forms that sessions have made of it for the wire, so that each form is made once and not for each
            client.
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
        execution_id: The id of this eligibility task; it says nothing about the client (F-048).
        plan: The plan by which the device finds out for which tasks it is eligible.
        checkpoint: The checkpoint that the plan starts from.
        spec: The population's eligibility specification, opaque; empty: none.
        forms: As in an `Offer`.
    """

    execution_id: str
    plan: Blob
    checkpoint: Blob
    spec: bytes = b""
    forms: dict[Hashable, Packed] = msgspec.field(default_factory=dict)


class ReportIn(msgspec.Struct, frozen=True):
    """The report of a client.

    Attributes:
        update: Its update, as bytes that only the function reads.
        status: A google.rpc.Code; 0 is OK.
        duration_s: How long the plan ran, if the client reports it.
    """

    update: bytes
    status: int = 0
    duration_s: float | None = None


# Notices, which the coordinator sends to a session.


class Accepted(msgspec.Struct, frozen=True):
    """The client takes part in a round."""

    offer: Offer


class Rejected(msgspec.Struct, frozen=True):
    """The client does not take part. ``reason`` is a short word for logs and metrics, such as ``full``."""

    reason: str


class ReportTaken(msgspec.Struct, frozen=True):
    """The round has taken the report, or has counted that it failed."""


class Secure(msgspec.Struct, frozen=True):
    """A message of secure aggregation for the client."""

    message: secagg_pb.ServerToClientWrapperMessage


class Over(msgspec.Struct, frozen=True):
    """The conversation ends with this error as its status.

    None: with OK, because the client does not half-close (F-015).
    """

    error: InvocationError | None


class Resume(msgspec.Struct, frozen=True):
    """The client may continue a message that `Coordinator.may_receive` has held up."""


Notice: TypeAlias = Accepted | Rejected | ReportTaken | Secure | Resume | Over


class Mailbox(Protocol):
    """Brings notices to one session. The service makes it; its end is the end of the conversation."""

    def put(self, notice: Notice) -> None:
        """Add a notice; the session gets it in a later turn of the loop."""

    def next(self) -> Awaitable[Sequence[Notice]]:
        """Wait for notices, and take all of them."""


class Verdict(enum.Enum):
    """The verdict on a retry token (F-054, F-055)."""

    ABSENT = "there is none, or it is forged, expired or of another population, which is the same as none"
    EARLY = "it is used before its window begins"
    IN_WINDOW = "it is used within its window"


class Tokens(Protocol):
    """Makes retry tokens and judges them; they use the time of day, since they outlive the process."""

    def make(self, population: str, delay_min_s: float, delay_max_s: float) -> str:
        """A signed token for a window, whose begin and end are given in seconds from now."""

    def judge(self, population: str, token: str) -> Verdict:
        """The verdict on a client's token now; never raises."""


class Device(Protocol):
    """The methods of a session that the coordinator needs."""

    mailbox: Mailbox


class Coordinator(Protocol):
    """All populations of a process, as a session sees them. Everything is called on one loop; nothing waits."""

    def enter(self, device: Device, metadata: Headers) -> None:
        """Begin a conversation; the time limit of its first message begins now (F-014).

        Raises:
            LimitExceeded: There are too many conversations, in all or of this peer (F-139).
            ShuttingDown: The process drains (F-143).
            StatusError: The API key is wrong (UNAUTHENTICATED, F-007).
        """

    def windows(self, device: Device, checkin: Checkin) -> tuple[Window, Window]:
        """When to check in again after an acceptance, and after a rejection.

        Raises:
            StatusError: There is no such population (NOT_FOUND, F-005), or the metadata name another one (F-006).
        """

    def eligibility(self, device: Device, checkin: Checkin) -> Eligibility | Rejected | None:
        """The eligibility task; None: the population has none (F-040)."""

    def check_in(self, device: Device, checkin: Checkin) -> None:
        """Wait for a round; answered by `Accepted` or `Rejected`."""

    def report(self, device: Device, report: ReportIn) -> None:
        """Give a plain report; answered by `ReportTaken` or `Over` (F-016)."""

    def secure(self, device: Device, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Give a message of secure aggregation; ``report`` came in the same frame (F-093).

        Answered by `Secure`, `ReportTaken` or `Over`.
        """

    def moved(self, device: Device, *, sent: int, received: int) -> None:
        """Count bytes of the chunk layer, in both directions (F-141)."""

    def may_receive(self, device: Device, size: int, upto: int) -> bool:
        """Whether ``upto`` bytes of a message of ``size`` may be received.

        Otherwise its session reads no more until `Resume`.

        The number of large messages at once is limited, so that memory is bounded whatever clients do (F-081).
        """

    def received(self, device: Device) -> None:
        """Note that a message of `may_receive` is complete; if it was a report, the coordinator has it."""

    def leave(self, device: Device) -> None:
        """End a device's conversation; its place is free again (F-012, F-013). Idempotent."""
