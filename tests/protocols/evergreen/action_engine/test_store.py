"""`invoker.protocols.evergreen.action_engine.store`: which nodes are kept, for whom, and how many."""

from __future__ import annotations

import pytest

from invoker.errors import LimitExceeded, Status, StatusError
from invoker.protocols.evergreen.action_engine.nodes import OVERHEAD, Reader
from invoker.protocols.evergreen.action_engine.running import Running
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.store import NodeStore
from invoker.protocols.evergreen.action_engine.wire import ABORT, END, Action, Chunk, Fragment, Metadata

TEXT = Metadata("text/plain")


def item(id: str, seq: int = 0, data: bytes = b"x", *, last: bool = False) -> Fragment:
    """A fragment with text."""
    return Fragment(id, Chunk(data, metadata=TEXT), seq, continued=not last)


def store(**settings: int) -> NodeStore:
    """One with other limits."""
    return NodeStore(ActionEngineSettings(**settings))


def run(kept: NodeStore, inputs: tuple[str, ...], outputs: tuple[str, ...] = ()) -> Running:
    """An action that reads and writes these nodes."""
    readers = kept.attach("1", inputs, set(outputs))
    return Running("A", dict(enumerate(outputs)), readers)


def test_a_node_is_kept_until_an_action_reads_it() -> None:
    """Fragments may come first; nobody is told of them."""
    kept = store()
    assert not kept.put(item("n"))
    assert kept.size == OVERHEAD + 1
    (reader,) = run(kept, ("n",)).readers
    assert isinstance(reader.node.at(0), Chunk)
    assert kept.put(item("n", 1)) == (reader,)


def test_two_inputs_may_read_one_node() -> None:
    """Of one action or of two."""
    kept = store()
    first = run(kept, ("n", "n"))
    second = run(kept, ("n",))
    assert len({reader.node for reader in (*first.readers, *second.readers)}) == 1


def test_all_is_released_when_the_action_is_over() -> None:
    """And what still comes for its inputs is dropped, up to their end."""
    kept = store()
    running = run(kept, ("n",), ("y",))
    kept.put(item("n"))
    kept.release(running)
    assert kept.size == 0
    assert not kept.put(item("n", 1))
    assert kept.size == 0
    kept.put(item("n", 2, last=True))
    kept.put(item("n", 0))
    assert kept.size == OVERHEAD + 1


def test_ids_may_be_used_again_by_a_later_action() -> None:
    """Inputs and outputs."""
    kept = store()
    kept.release(run(kept, ("n",), ("y",)))
    (reader,) = run(kept, ("n",), ("y",)).readers
    assert kept.put(item("n")) == (reader,)


def test_others_go_on_reading() -> None:
    """What one action leaves."""
    kept = store()
    first, second = run(kept, ("n",)), run(kept, ("n",))
    kept.put(item("n"))
    second.readers[0].seq = 1
    kept.release(first)
    assert kept.size == 0
    assert kept.put(item("n", 1)) == tuple(second.readers)


@pytest.mark.parametrize("id", ["n", "taken", ABORT])
def test_an_output_needs_an_id_of_its_own(id: str) -> None:
    """Not one of its inputs, of another action, or of the wire."""
    kept = store()
    run(kept, ("m",), ("taken",))
    with pytest.raises(StatusError, match="is in use") as met:
        run(kept, ("n",), (id,))
    assert met.value.status == Status.INVALID_ARGUMENT


def test_an_action_that_comes_too_late_leaves_nothing() -> None:
    """The inputs it could have read are given back."""
    kept = store()
    early = run(kept, ("n",))
    kept.put(item("n"))
    early.readers[0].seq = 1
    kept.trim(early.readers[0].node)
    kept.put(item("m"))
    with pytest.raises(StatusError, match="read by another action"):
        run(kept, ("m", "n"))
    assert kept.size == 0
    assert early.readers[0].node.readers == early.readers


def test_an_action_may_read_what_another_writes() -> None:
    """Only the writer writes there; the rest is read when the writer is over."""
    kept = store()
    writer = run(kept, (), ("y",))
    reader = run(kept, ("y",))
    assert not kept.put(item("y", 0, b"forged"))
    node = reader.readers[0].node
    assert kept.made_here(item("y")) == tuple(reader.readers)
    assert kept.made_here(Fragment("y", END, 1)) == tuple(reader.readers)
    kept.release(writer)
    assert (node.length, kept.size) == (1, OVERHEAD + 1)
    kept.release(reader)
    assert kept.size == 0


def test_an_output_that_nobody_reads_here_is_not_kept() -> None:
    """It has left for the peer."""
    kept = store()
    run(kept, (), ("y",))
    assert not kept.made_here(item("y"))
    assert kept.size == 0


def test_bytes_are_limited() -> None:
    """Of all nodes together."""
    kept = store(session_bytes=2 * (OVERHEAD + 1))
    kept.put(item("a"))
    kept.put(item("b"))
    with pytest.raises(LimitExceeded, match="no action has taken"):
        kept.put(item("c"))


def test_bytes_between_actions_are_limited() -> None:
    """Whoever reads may be slower than who writes."""
    kept = store(session_bytes=2 * (OVERHEAD + 1))
    run(kept, (), ("y",))
    run(kept, ("y",))
    kept.made_here(item("y", 0))
    kept.made_here(item("y", 1))
    with pytest.raises(LimitExceeded, match="no action has taken"):
        kept.made_here(item("y", 2))


def test_nodes_are_limited() -> None:
    """Also those of actions."""
    kept = store(nodes=2)
    kept.put(item("a"))
    kept.put(item("b"))
    with pytest.raises(LimitExceeded, match="2 nodes"):
        kept.put(item("c"))
    with pytest.raises(LimitExceeded, match="2 nodes"):
        kept.attach("1", ("c",), set())


def test_names_are_limited() -> None:
    """Each name and id of an action, and ids of nodes, in UTF-8."""
    kept = store(name_bytes=8)
    kept.check_names(Action("é" * 4, "name", (("x", "A#x"),), (("y", "A#y"),)))
    long = "é" * 5
    for action in (
        Action(long, "n"),
        Action("A", long),
        Action("A", "n", ((long, "x"),)),
        Action("A", "n", (), (("y", long),)),
    ):
        with pytest.raises(LimitExceeded, match="exceeds the limit of 8 bytes"):
            kept.check_names(action)
    with pytest.raises(LimitExceeded, match="the id of a node"):
        kept.put(item(long))


def test_inputs_of_refused_actions_do_not_pile_up() -> None:
    """Those that are complete are forgotten, those that are not are dropped to their end."""
    kept = store(nodes=4)
    for number in range(100):
        kept.put(item(f"whole{number}", last=True))
        kept.put(item(f"part{number}"))
        kept.abandon([f"whole{number}", f"part{number}", f"late{number}"])
        kept.put(item(f"late{number}"))
        assert kept.size == 0


def test_what_is_read_is_not_abandoned() -> None:
    """A refused action may name what another one reads."""
    kept = store()
    running = run(kept, ("n",), ("y",))
    kept.abandon(["n", "y"])
    reader: Reader = running.readers[0]
    assert kept.put(item("n")) == (reader,)
