"""The nine steps in which a fragment is checked: for each, which of two errors wins (2.2)."""

from __future__ import annotations

import pytest

from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import ticks, upper
from tests.protocols.evergreen.notation import A, F, K

OUTPUT = A("ticks", {}, {"y": "r"})


def both_kinds(name, seq, data="x", *, more=False, **rest):
    """A fragment with a chunk and a child."""
    made = F(name, seq, data, more=more, **rest)
    made.child_ids.append("child")
    return made


def test_step_1_an_invalid_seq_wins_over_ownership():
    """A negative seq for an output is told as a negative seq."""
    Conversation(ticks).send(OUTPUT).send(F("r", -1, "x")).fails("FRAG", "seq -1 is below 0")


def test_step_1_an_empty_id_wins_over_an_invalid_seq_and_all_content():
    """The id is looked at first."""
    Conversation().send(both_kinds("", 1, mimetype="a/b")).fails("FRAG", "no node id")


def test_step_2_ownership_wins_over_duplicates():
    """A seq that the action has written already is refused, not dropped."""
    c = Conversation(ticks).send(OUTPUT).emit("a1", "one")
    c.send(F("r", 0, "x")).fails("FRAG", "node 'r', seq 0: it is an output of action 'ticks' #1")


def test_step_2_ownership_wins_over_the_final_seq():
    """After the output is complete it is still its action's."""
    c = Conversation(ticks).send(OUTPUT).emit("a1", "one").finish("a1")
    c.send(F("r", 9, "x")).fails("FRAG", "output of action")


def test_step_3_duplicates_win_over_the_final_seq():
    """A seq that was met is dropped although it now says to be final below another."""
    c = Conversation().send(F("p", 0, "a", more=True), F("p", 3, "d", more=True)).send(F("p", 0, "z"))
    assert c.is_open


def test_step_3_duplicates_win_over_everything_in_the_content():
    """Kind, metadata, limits and cycles of a duplicate do not matter."""
    c = Conversation(session_bytes=300).send(F("p", 0, "a", more=True))
    c.send(both_kinds("p", 0, "z" * 1000, more=True), K("p", 0, "p"), F("p", 0, "z", type=None))
    assert c.is_open


def test_step_4_the_final_seq_wins_over_the_kind():
    """A fragment of the wrong kind above the end is told as above the end."""
    Conversation().send(F("p", 0, "a"), K("p", 1, "child")).fails("FRAG", "seq 1 is beyond final seq 0")
    Conversation().send(F("p", 0, "a"), both_kinds("p", 1)).fails("FRAG", "seq 1 is beyond final seq 0")


def test_step_4_a_final_below_a_seq_wins_over_the_kind():
    """So is the end below another fragment."""
    Conversation().send(F("p", 5, "a", more=True), K("p", 1, "child")).fails("FRAG", "seq 5 is beyond final seq 1")


def test_step_5_the_kind_wins_over_metadata():
    """Both kinds and stray metadata, or a chunk in an interior node without metadata: the kind is told."""
    Conversation().send(both_kinds("p", 1, mimetype="a/b")).fails("FRAG", "both child ids and a chunk")
    Conversation().send(K("p", 1, "a"), F("p", 0, "x", type=None, more=True)).fails("FRAG", "have child ids")
    Conversation().send(K("p", 0, "a", more=True), F("p", 1, "x", mimetype="a/b")).fails("FRAG", "have child ids")


def test_step_5_the_kind_wins_over_edges():
    """Children that include their parent, in a leaf: the kind is told."""
    Conversation().send(F("p", 0, "a", more=True), K("p", 1, "p")).fails("FRAG", "have chunks")
    Conversation().send(F("p", 0, "a", more=True), K("p", 1, "")).fails("FRAG", "have chunks")


@pytest.mark.parametrize("part", [F("p", 0, "x" * 500, type=None), F("p", 1, "x" * 500, mimetype="a/b")])
def test_step_6_metadata_win_over_the_limit_of_bytes(part):
    """A chunk that is too large and has the wrong metadata is told for its metadata."""
    Conversation(session_bytes=100).send(part).fails("FRAG", "metadata")


def test_step_6_metadata_win_over_the_limit_of_nodes():
    """A node too many whose first chunk has no metadata is told for its metadata."""
    Conversation(nodes=1).send(F("p", 0, "x"), F("q", 0, "x", type=None)).fails("FRAG", "metadata")


def test_step_7_limits_win_over_empty_child_ids_and_cycles():
    """A list of children that is too long is not looked at."""
    Conversation(session_bytes=100).send(K("p", 0, "", *(f"c{n}" for n in range(50)))).fails("LIM", "node 'p'")
    Conversation(session_bytes=100).send(K("p", 0, "p", *(f"c{n}" for n in range(50)))).fails("LIM", "node 'p'")


def test_step_8_an_edge_that_closes_a_cycle_is_never_stored():
    """The error comes at once, and nobody is woken for it."""
    c = Conversation(upper).send(A("upper", {"x": "p"}, {"y": "r"}), F("q", 0, "hi"))
    c.send(K("p", 0, "q", "p")).fails("GRAPH", "node 'p' includes itself")
    assert c.invocations["a1"].fed == {}


def test_step_9_what_was_stored_wakes_its_readers():
    """Whoever waited for the node goes on in the same turn."""
    c = Conversation(upper).send(A("upper", {"x": "p"}, {"y": "r"}))
    assert c.invocations["a1"].fed == {}
    c.send(F("p", 0, "hi"))
    assert c.invocations["a1"].payloads() == [b"hi"]
