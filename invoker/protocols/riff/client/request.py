"""The request of a caller: `Request` holds it and makes the StartFrame from it; `Options` is the same as keywords."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict
from urllib.parse import quote

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.connect.metadata import metadata_pairs
from invoker.message import Headers
from invoker.protocols.riff.wire import FUNCTION_KEY


class Options(TypedDict, total=False):
    """The keywords of ``invoke``; they are described at `Request`."""

    accept: str | Sequence[str]
    content_type: str | Sequence[str] | Mapping[int, str]
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None
    headers: Mapping[str, str]
    metadata: Mapping[str, str | bytes]
    function: str
    timeout_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How one call is made.

    Attributes:
        accept: The media types that each output may have, as a comma-separated list of media ranges, the preferred one
            first. One such text is used for every output; there is one output unless ``output_names`` names several. A
            sequence has one text per output; an empty one means that the function has no output.
        content_type: Media type of the inputs' values: one for all, or a mapping by index. Without one, a ``str`` is
            sent as text/plain, a bytes-like value as application/octet-stream, any other value as application/json.
        input_names: One name per input, or an empty sequence. None: ``in`` if the call has one input and one output,
            since some peers need a name; otherwise no names.
        output_names: One name per output, or an empty sequence. None: ``out`` in the same case; otherwise no names.
        sent_first: Indexes of inputs whose values are all sent before those of the others.
        headers: Sent with every value; the headers of a `Message` override them.
        metadata: gRPC metadata of the call; a key that ends in ``-bin`` takes bytes.
        function: Which function of a catalogue is meant; empty for the only one.
        timeout_s: The call ends with DEADLINE_EXCEEDED after this many seconds; None: never.

    Raises:
        ValueError: ``accept`` and ``output_names`` differ in length, or ``timeout_s`` is not positive.
    """

    accept: str | Sequence[str] = "*/*"
    content_type: str | Sequence[str] | Mapping[int, str] = ""
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    sent_first: Collection[int] = ()
    headers: Mapping[str, str] = field(default_factory=Headers)
    metadata: Mapping[str, str | bytes] = field(default_factory=dict)
    function: str = ""
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        for names in ("input_names", "output_names"):
            if isinstance(getattr(self, names), str):
                raise TypeError(f"{names} is a sequence of names, not one str")
        count = len(self.accepts())
        if self.output_names and count != len(self.output_names):
            # riff wants as many names as expected content types.
            raise ValueError(
                f"accept has {count} entries for {len(self.output_names)} output names; give one an output"
            )
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"timeout_s is {self.timeout_s}, but it must be more than 0")

    def accepts(self) -> tuple[str, ...]:
        """The accepted media types, one text per output."""
        if isinstance(self.accept, str):
            return (self.accept,) * max(1, len(self.output_names or ()))
        return tuple(self.accept)

    def content_type_of(self, index: int) -> str:
        """The media type given for input ``index``; empty if the values determine it."""
        if isinstance(self.content_type, str):
            return self.content_type
        if isinstance(self.content_type, Mapping):
            return self.content_type.get(index, "")
        return self.content_type[index] if index < len(self.content_type) else ""

    def output_name(self, index: int) -> str:
        """The name of output ``index``; empty when it has none."""
        names = self.output_names or ()
        return names[index] if 0 <= index < len(names) else ""

    def takes_plain_names(self, inputs: int) -> bool:
        """Whether the caller leaves out names, and the call seems to have one input and one output."""
        return inputs == 1 and len(self.accepts()) == 1 and None in (self.input_names, self.output_names)

    def start_signal(self, *, with_plain_names: bool = False) -> bytes:
        """The serialised signal that opens the call (R-045).

        Args:
            with_plain_names: Whether ``in`` and ``out`` are sent for names that the caller leaves out; otherwise none
                are.
        """
        ins = ("in",) if with_plain_names and self.input_names is None else self.input_names or ()
        outs = ("out",) if with_plain_names and self.output_names is None else self.output_names or ()
        start = pb.StartFrame(expectedContentTypes=self.accepts(), inputNames=ins, outputNames=outs)
        return pb.InputSignal(start=start).SerializeToString()

    def metadata_pairs(self, defaults: Mapping[str, str | bytes]) -> tuple[tuple[str, str | bytes], ...]:
        """The call's metadata, joined with the client's own; the call's values override those of the client.

        Raises:
            ValueError: A key or value cannot travel as gRPC metadata.
        """
        return metadata_pairs(defaults, self.metadata, {FUNCTION_KEY: _ascii(self.function)} if self.function else {})


def _ascii(name: str) -> str:
    """A name in the form for metadata: non-ASCII characters are percent-encoded."""
    return name if name.isascii() else quote(name, safe="")
