"""What actions, configurations, metadata and drops cost a session: counted, bounded, and given back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import any_pb2, duration_pb2

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.reader import read
from invoker.core.steps import Close, Finished
from invoker.message import Headers
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings


def upper(x: str) -> str:
    return x.upper()


def text(x: Iterator[str]) -> Iterator[str]:
    yield from x


def anything(**more: str) -> str:
    return "".join(more)


def session(*extensions: str, **settings: Any) -> EvergreenSession:
    asked = Headers({"evergreen-extensions": ", ".join(extensions)})
    specs = [read(one) for one in (upper, text, anything)]
    return EvergreenSession(specs, asked, EvergreenSettings(**settings))


def action(
    name: str, inputs: list[tuple[str, str]], *, out: str = "", configs: list[any_pb2.Any] | None = None
) -> pb.Action:
    made = pb.Action(name=name, configs=configs or [])
    made.inputs.extend(pb.NamedParameter(name=key, id=value) for key, value in inputs)
    if out:
        made.outputs.append(pb.NamedParameter(name="out", id=out))
    return made


def leaf(
    node: str, data: bytes, *, seq: int = 0, more: bool = False, role: str = "", told: bool = True
) -> pb.NodeFragment:
    made = pb.NodeFragment(id=node, seq=seq, continued=more)
    made.chunk_fragment.data = data
    if told:
        made.chunk_fragment.metadata.mimetype = "text/plain"
        made.chunk_fragment.metadata.role = role
    return made


def say(one: EvergreenSession, *parts: pb.NodeFragment | pb.Action) -> list[Any]:
    message = pb.SessionMessage()
    for part in parts:
        (message.actions if isinstance(part, pb.Action) else message.node_fragments).append(part)
    return list(one.receive(message.SerializeToString()))


def is_limited(steps: list[Any]) -> bool:
    return isinstance(steps[-1], Close) and "Limit Exceeded" in str(steps[-1].error)


def test_E115_parameters_of_an_action_weigh_while_it_lives() -> None:
    """A thousand names on one node are more than a session of 50 kB may hold; more of them no action may have."""
    many = [(f"n{number}", "p") for number in range(1_000)]
    assert is_limited(say(session(session_bytes=50_000), action("anything", many)))
    refused = say(session(session_bytes=50_000), action("anything", [*many, ("n", "p")]))[-1]
    assert "is given 1001 inputs, which exceeds the limit of 1000" in str(refused.error)
    one = session()
    say(one, action("anything", many[:100]))
    assert one.graph.held > 0
    one.deliver(Finished("a1"))
    assert one.graph.held == 0


def test_E115_empty_configurations_weigh_too() -> None:
    """They have no bytes, but each is kept for the function."""
    many = [any_pb2.Any()] * 20_000
    assert is_limited(say(session(session_bytes=1_000_000), action("upper", [("x", "p")], configs=many)))


def test_E003_configurations_go_with_their_action() -> None:
    """Its output node stays, and keeps nothing of them."""
    one = session()
    say(one, action("upper", [("x", "p")], out="r", configs=[any_pb2.Any(value=b"x" * 1000)]))
    owner = one.graph.nodes["r"].owner
    assert owner.open is not None
    one.deliver(Finished("a1"))
    assert owner.open is None


def test_E036_later_metadata_that_are_kept_to_compare_weigh() -> None:
    """In the mode identical those of a later seq may come first."""
    one = session(metadata="identical", session_bytes=10_000)
    assert is_limited(say(one, leaf("p", b"x", seq=1, role="y" * 20_000)))


def test_a_leaf_is_joined_once_for_all_who_read_it_whole() -> None:
    """Also while another action stands in its pieces, which stay as they are."""
    one = session()
    say(one, action("text", [("x", "p")]), leaf("p", b"a", more=True), leaf("p", b"b", seq=1, more=True, told=False))
    node = one.graph.nodes["p"]
    node.readers += 1  # as a cursor that has not taken all of it
    say(one, leaf("p", b"c", seq=2, told=False))
    assert node.payload() == b"abc"
    assert node.payload() is node.payload()


def test_E119_dropping_below_many_ancestors_is_linear() -> None:
    """A chain above a node is not walked again for each of its leaves; what is kept goes with the last action."""
    one = session("drop")
    chain = [pb.NodeFragment(id=f"n{at}", child_ids=[f"n{at + 1}", f"l{at}"]) for at in range(400)]
    say(one, action("text", [("x", "elsewhere")]), *chain, *[leaf(f"l{at}", b"x") for at in range(400)])
    held = one.graph.held
    say(one, *[action("DROP", [("node", f"l{at}")]) for at in range(400)])
    assert one.graph.nodes["l399"].content != [], "too deep to tell whether it is read"
    assert one.graph.nodes["l10"].content == []
    assert one.graph.held < held
    one.deliver(Finished("a1"))
    assert one.graph.nodes["l399"].content == []


def test_E120_a_ttl_that_is_set_again_and_again_leaves_nothing_behind() -> None:
    """The last call wins, and the others are forgotten."""
    one = session("ttl")
    say(one, leaf("p", b"x"))
    packed = any_pb2.Any()
    for seconds in range(5000, 0, -1):
        packed.Pack(duration_pb2.Duration(seconds=seconds))
        say(one, action("SET_TTL", [("node", "p")], configs=[packed]))
    assert len(one.extensions._lifetimes._timers._heap) < 200
