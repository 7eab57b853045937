"""`Known`: the server's description of a function that is about to be called, or nothing if the server has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import grpc.aio

from invoker._pb.invoker import describe_pb2 as pb
from invoker.protocols.riff.wire import DESCRIBE, FUNCTIONS

ANSWER_S = 0.5
"""Seconds that a server may take to describe a function; after that it is called without a description."""


@dataclass(frozen=True, slots=True)
class Known:
    """How a server describes a function.

    Attributes:
        function: The description as the wire has it; None: the server does not describe it.
    """

    function: pb.Function | None = None

    def __bool__(self) -> bool:
        return self.function is not None

    @property
    def inputs(self) -> Sequence[pb.Input]:
        """The inputs in their order, required ones first; empty if they are not known, or their number is not fixed."""
        return () if self.function is None or self.function.open_inputs else self.function.inputs

    @property
    def outputs(self) -> Sequence[pb.Output]:
        """The outputs in their order; empty if they are not known, or their number is not fixed."""
        return () if self.function is None or self.function.open_outputs else self.function.outputs

    @property
    def is_source(self) -> bool:
        """Whether the function takes no input at all."""
        return self.function is not None and not self.function.inputs and not self.function.open_inputs

    @property
    def is_sink(self) -> bool:
        """Whether the function gives no output at all."""
        return self.function is not None and not self.function.outputs and not self.function.open_outputs

    @property
    def labels(self) -> int:
        """How many inputs every call has: the required ones, or the first one if all are optional."""
        required = sum(not one.is_option for one in self.inputs)
        return required or min(1, len(self.inputs))


NOTHING = Known()


async def ask(channel: grpc.aio.Channel, function: str, metadata: tuple[tuple[str, str | bytes], ...]) -> Known:
    """Ask a connected server for a description; gives `NOTHING` if it has none.

    Args:
        channel: The channel to the server.
        function: The name of the function in a catalogue; empty for the only one.
        metadata: The metadata of the call that follows, since a proxy may route by it.
    """
    describe = channel.unary_unary(
        f"/{FUNCTIONS}/{DESCRIBE}",
        request_serializer=pb.DescribeRequest.SerializeToString,
        response_deserializer=pb.Function.FromString,
    )
    try:
        return Known(await describe(pb.DescribeRequest(function=function), metadata=metadata, timeout=ANSWER_S))
    except grpc.aio.AioRpcError:
        return NOTHING  # other servers answer UNIMPLEMENTED; any other error will be reported by the call itself
