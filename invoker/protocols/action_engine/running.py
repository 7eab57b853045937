"""`Running`: what a session remembers of an action that runs: its readers, and the places of its outputs."""

from __future__ import annotations

from invoker.errors import InvocationError
from invoker.protocols.action_engine.nodes import Reader
from invoker.protocols.action_engine.statuses import status_chunk
from invoker.protocols.action_engine.table import node_id
from invoker.protocols.action_engine.wire import END, STATUS, Chunk, Fragment

__all__ = ["Running"]


class Running:
    """One action.

    Args:
        id: As the peer named it.
        outputs: Index of an output -> id of its node.
        readers: Of its inputs.
        places: Index of an output -> place of its next item.
    """

    __slots__ = ("_places", "id", "outputs", "readers")

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is
        outputs: dict[int, str],
        readers: list[Reader],
        places: dict[int, int] | None = None,
    ) -> None:
        self.id = id
        self.outputs = outputs
        self.readers = readers
        self._places = places or dict.fromkeys(outputs, 0)

    def item(self, index: int, chunk: Chunk) -> Fragment | None:
        """The next item of an output; None for what has no port, and for empty bytes, which would end the node."""
        if index not in self._places or chunk.is_null:
            return None
        seq = self._places[index]
        self._places[index] = seq + 1
        return Fragment(self.outputs[index], chunk, seq, continued=True)

    def end(self, index: int, error: InvocationError | None = None) -> Fragment | None:
        """The end of an output; None if it has ended."""
        seq = self._places.pop(index, None)
        if seq is None:
            return None
        return Fragment(self.outputs[index], END if error is None else status_chunk(error), seq)

    def ending(self, error: InvocationError | None) -> tuple[Fragment, ...]:
        """The ends of all outputs that are open, then the status."""
        ends = [self.end(index, error) for index in list(self._places)]
        status = Fragment(node_id(self.id, STATUS), status_chunk(error))
        return (*(one for one in ends if one is not None), status)
