"""`invoker.protocols.evergreen.action_engine.running`: items, ends and status of an action's outputs."""

from __future__ import annotations

from invoker.errors import Status, StatusError
from invoker.protocols.evergreen.action_engine.running import Running
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.wire import BYTES, END, Chunk, Fragment, Metadata

ITEM = Chunk(b"x", metadata=Metadata("text/plain"))


def test_items_take_the_places_of_their_node() -> None:
    """Each output counts for itself."""
    running = Running("A", {0: "A#y", 1: "z"}, [])
    assert running.item(0, ITEM) == Fragment("A#y", ITEM, 0, continued=True)
    assert running.item(0, ITEM) == Fragment("A#y", ITEM, 1, continued=True)
    assert running.item(1, ITEM) == Fragment("z", ITEM, 0, continued=True)
    assert running.item(2, ITEM) is None


def test_empty_bytes_are_no_item() -> None:
    """On the wire they would end the node, and take no place."""
    running = Running("A", {0: "y"}, [])
    assert running.item(0, Chunk(metadata=Metadata(BYTES))) is None
    found = running.item(0, ITEM)
    assert found is not None
    assert found.seq == 0


def test_outputs_end_once() -> None:
    """Each by itself, or all with the action; the status comes last."""
    running = Running("A", {0: "y", 1: "z"}, [])
    running.item(0, ITEM)
    assert running.end(0) == Fragment("y", END, 1)
    assert running.end(0) is None
    status = Fragment("A#__status__", status_chunk(None))
    assert running.ending(None) == (Fragment("z", END, 0), status)
    assert running.ending(None) == (status,)


def test_an_error_ends_outputs_with_the_status() -> None:
    """So that who reads them sees it."""
    running = Running("A", {0: "y"}, [])
    running.item(0, ITEM)
    error = StatusError(Status.INTERNAL, "broken")
    chunk = status_chunk(error)
    assert running.ending(error) == (Fragment("y", chunk, 1), Fragment("A#__status__", chunk))
