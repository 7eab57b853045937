"""The frames of the pipe between a serving process and a child: MessagePack, each after its length in bytes.

::

    to the child                              from the child
    ----------------------------------------  ----------------------------------------------------------
    Hello    what to load, once               Ready    it is loaded; or why it is not
    Begin    one invocation begins            Wants    an input has room again, or is waited for
    Give     a message for an input           Gave     a message of an output
    End      an input, or all, has ended      Over     one of several outputs has ended
    Shut     nobody reads an output           Done     the invocation is over
    Stop     the invocation is over           Idle     user code has been left: the next one may begin
    Answer   to an Asked                      Asked    the function uses its scope

A child runs the author's code, so what it sends is checked like what a peer sends.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from invoker.codecs.exact import ACCEPTS
from invoker.core.steps import Terms
from invoker.errors.wording import Place, Why
from invoker.message import Message, as_headers

_HEAD: Final = 4
_Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]

MOST_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of one message of an output. The serving process assembles it on its loop, where everything else waits
meanwhile."""

_LONGEST: Final = 2 * MOST_BYTES
"""The most bytes of a frame. Text that a function writes into the pipe by mistake is refused: its first letter, read as
the first byte of a length, means at least 512 MiB."""


class Packed(msgspec.Struct, array_like=True):
    """A `Message` in the form that frames carry; see `packed` and `unpacked`."""

    payload: bytes
    media_type: str
    headers: dict[str, str] = {}


class Loaded(msgspec.Struct, array_like=True):
    """A function to load: by its entrypoint, or from bytes of cloudpickle where it has none."""

    name: str
    entrypoint: str
    pickle: bytes = b""


class Hello(msgspec.Struct, tag=1, array_like=True):
    """The functions that a child must load, and the settings for them.

    Attributes:
        path: The search path of modules.
        functions: The isolated functions.
        settings: The settings of the engine and the driver, by name; see `invoker.server.isolated`.
    """

    path: list[str]
    functions: list[Loaded]
    settings: dict[str, Any]


class Give(msgspec.Struct, tag=2, array_like=True):
    """A message for the input with this index."""

    index: int
    message: Packed


class End(msgspec.Struct, tag=4, array_like=True):
    """The input ``index`` has ended normally."""

    index: int


class Begin(msgspec.Struct, tag=3, array_like=True):
    """Begins one invocation: the fields of its `Open`, its id in the log, and the data of its context.

    Attributes:
        memory_bytes: How much memory it may take; 0: any amount.
        configs: Dicts, and messages of protobuf by type URL, bytes, and the class that holds them as "module:name".
        given: The messages of its inputs so far; ``ended`` says which inputs have ended. The function is called after
            these.
        carries: See `invoker.context.Scope`.
    """

    id: str
    function: str
    accepts: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    bound: tuple[str, ...] | None
    terms: Terms
    unwanted: tuple[int, ...]
    metadata: dict[str, str]
    deadline: float | None
    memory_bytes: int
    configs: list[Any]
    given: list[Give]
    ended: list[int]
    carries: str = ACCEPTS


class Shut(msgspec.Struct, tag=5, array_like=True):
    """An output has no reader any more."""

    index: int


class Stop(msgspec.Struct, tag=6, array_like=True):
    """The invocation is over for the serving process; user code has to return."""


class Fault(msgspec.Struct, array_like=True):
    """An `InvocationError`, in its parts.

    Attributes:
        name: The name of its class.
        trace: The traceback of the author's exception that caused it; empty if there is none.
        raised: Module and name of the class of that exception.
    """

    name: str
    status: int
    text: str
    place: Place | None = None
    met: str = ""
    why: Why | None = None
    hint: str = ""
    kind: str = ""
    details: dict[str, str] = {}
    trace: str = ""
    raised: tuple[str, str] = ("builtins", "Exception")


class Answer(msgspec.Struct, tag=7, array_like=True):
    """Answers an `Asked`.

    It brings a message, an answer of the store, the end of a stream, an error, or a request for the next value of an
    argument.

    Attributes:
        number: The id of the `Asked`.
        wants: The argument whose next value is wanted; -1: none.
    """

    number: int
    value: Any = None
    is_end: bool = False
    fault: Fault | None = None
    wants: int = -1


class Ready(msgspec.Struct, tag=8, array_like=True):
    """The functions are loaded and started, or the reason why not."""

    problem: str = ""


class Wants(msgspec.Struct, tag=9, array_like=True):
    """The function has taken at least ``taken`` of the messages of an input.

    ``waits`` says that the input is empty and that the function waits for it.
    """

    index: int
    taken: int
    waits: bool


class Gave(msgspec.Struct, tag=10, array_like=True):
    """A message that the function gave on output ``index``."""

    index: int
    message: Packed


class Over(msgspec.Struct, tag=11, array_like=True):
    """One of several outputs has ended."""

    index: int


class Done(msgspec.Struct, tag=12, array_like=True):
    """The invocation is over.

    Attributes:
        cpu_ns: Processor time of the child since the invocation began.
        memory_bytes: The most resident memory of the child since the invocation began; 0: unknown.
    """

    fault: Fault | None = None
    cpu_ns: _Amount = 0
    memory_bytes: _Amount = 0


class Idle(msgspec.Struct, tag=13, array_like=True):
    """User code has returned. ``is_worn``: the child should not be used again."""

    is_worn: bool = False


class Asked(msgspec.Struct, tag=14, array_like=True):
    """The function calls another function or asks the store.

    Attributes:
        number: Chosen by the child.
        what: ``call``, ``stream`` or ``ask`` begins a request; ``more``, ``piece`` and ``drop`` continue or end one.
        name: The name of the function that is called, or of the question that is asked.
        args: By position; None stands for a stream of values.
        kwargs: By keyword, likewise.
        value: The question, or the next value of a stream.
    """

    number: int
    what: str
    name: str = ""
    args: list[Packed | None] = []
    kwargs: dict[str, Packed | None] = {}
    value: Any = None


ToChild: TypeAlias = Hello | Begin | Give | End | Shut | Stop | Answer
FromChild: TypeAlias = Ready | Wants | Gave | Over | Done | Idle | Asked

_encode = msgspec.msgpack.Encoder().encode


class Cut(Exception):
    """The bytes are not a frame that the other process may send."""


class Frames:
    """Takes frames out of the bytes of a pipe.

    Args:
        kinds: The types of frames that the other process may send.
    """

    def __init__(self, kinds: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds)
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes, and give the frames that they complete.

        Raises:
            Cut: A frame cannot be read.
        """
        rest, at, found = self._rest, 0, []
        rest += data
        while len(rest) - at >= _HEAD:
            size = int.from_bytes(rest[at : at + _HEAD], "big")
            if size >= _LONGEST:
                raise Cut(f"a frame of {size} bytes is announced; every frame has less than {_LONGEST} bytes")
            end = at + _HEAD + size
            if end > len(rest):
                break
            try:
                found.append(self._decoder.decode(bytes(memoryview(rest)[at + _HEAD : end])))
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Cut(f"a frame of {end - at - _HEAD} bytes cannot be read: {error}") from None
            at = end
        del rest[:at]
        return found


def framed(frame: ToChild | FromChild) -> bytes:
    """The bytes of a frame, with its length as a big-endian number in front."""
    data = _encode(frame)
    return len(data).to_bytes(_HEAD, "big") + data


def packed(message: Message[bytes]) -> Packed:
    """Convert a message to its form on the pipe."""
    return Packed(bytes(message.payload), message.media_type, dict(message.headers))


def unpacked(one: Packed) -> Message[bytes]:
    """Convert a message from its form on the pipe."""
    return Message(one.payload, as_headers(one.headers), one.media_type)
