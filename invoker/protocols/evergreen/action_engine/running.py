"""Makes the messages to peers about actions: `Running` those of a running action, the functions all others."""

from __future__ import annotations

from invoker.errors import InvocationError
from invoker.protocols.evergreen.action_engine.nodes import Reader
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.table import node_id
from invoker.protocols.evergreen.action_engine.wire import (
    DISPATCH,
    END,
    STATUS,
    Action,
    Chunk,
    Fragment,
    Metadata,
    encode,
)

_JSON = Metadata("application/json")


class Running:
    """One running action.

    Args:
        id: The id that the peer has chosen.
        outputs: Index of an output -> id of its node.
        readers: The readers of its inputs.
    """

    __slots__ = ("_places", "id", "outputs", "readers")

    def __init__(
        self,
        id: str,
        outputs: dict[int, str],
        readers: list[Reader],
    ) -> None:
        self.id = id
        self.outputs = outputs
        self.readers = readers
        self._places = dict.fromkeys(outputs, 0)

    def item(self, index: int, chunk: Chunk) -> Fragment | None:
        """The fragment for the next item of an output.

        None if the output has no port, or if the chunk is empty, since an empty chunk would end the node.
        """
        if index not in self._places or chunk.is_null:
            return None
        seq = self._places[index]
        self._places[index] = seq + 1
        return Fragment(self.outputs[index], chunk, seq, continued=True)

    def end(self, index: int, error: InvocationError | None = None) -> Fragment | None:
        """The fragment that ends an output; None if it has already ended."""
        seq = self._places.pop(index, None)
        if seq is None:
            return None
        return Fragment(self.outputs[index], END if error is None else status_chunk(error), seq)

    def ending(self, error: InvocationError | None) -> tuple[Fragment, ...]:
        """The fragments that end all open outputs, followed by the status."""
        ends = [self.end(index, error) for index in list(self._places)]
        status = Fragment(node_id(self.id, STATUS), status_chunk(error))
        return (*(one for one in ends if one is not None), status)


def acceptance(action: Action) -> bytes:
    """The message that reports that an action was accepted."""
    return encode((Fragment(node_id(action.id, DISPATCH), status_chunk(None)),))


def refusal(action: Action, error: InvocationError) -> bytes:
    """The message that reports that an action was refused; it also ends the outputs of the action."""
    chunk = status_chunk(error)
    outputs = [Fragment(port[1], chunk) for port in action.outputs]
    return encode((*outputs, *(Fragment(node_id(action.id, name), chunk) for name in (DISPATCH, STATUS))))


def listing(action: Action, objects: list[bytes]) -> bytes:
    """The answer to an action that lists the actions: all its messages, with an item for each JSON object."""
    id = next(iter(action.outputs), ("", node_id(action.id, "actions")))[1]
    answer = Running(action.id, {0: id}, [])
    items = [answer.item(0, Chunk(one, metadata=_JSON)) for one in objects]
    accepted = Fragment(node_id(action.id, DISPATCH), status_chunk(None))
    return encode((accepted, *(one for one in items if one is not None), *answer.ending(None)))
