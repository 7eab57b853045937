"""Whatever comes, in any order: a session answers with steps, ends once, and never waits for nothing (E-011, E-114).

Models run as far as they can, references are answered, time passes; so after the half-close a session must end. The
driver of `Conversation` refuses steps that no driver could do.
"""

from __future__ import annotations

import random

import pytest
from google.protobuf import duration_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.errors import reference_failed
from tests.protocols.evergreen.conversation import Conversation, spec_of
from tests.protocols.evergreen.functions import add, either, join, objects, relay, rows, several, split, ticks, upper
from tests.protocols.evergreen.models import Give, Take, each, idle, source
from tests.protocols.evergreen.notation import END_OF_TURN, JSON, TEXT, A, F, K

INPUTS = {
    "upper": ("x",), "add": ("a", "b"), "either": ("x",), "join": ("x", "y"), "relay": ("x",), "objects": ("x",),
    "split": ("x",), "ticks": (), "rows": (), "several": ("p", "q"),
}  # fmt: skip
OUTPUTS = {"split": ("left", "right")}


def halves(_):
    """Gives what it reads to both outputs in turns."""
    side = 0
    while (message := (yield Take())) is not None:
        yield Give(message.payload.decode(errors="replace"), side)
        side = 1 - side


def both(_):
    """Reads its second input to the end, then the first."""
    for index in (1, 0):
        while (message := (yield Take(index))) is not None:
            yield Give(message.payload.decode(errors="replace"))


MODELS = {
    "relay": each(str.upper), "join": both, "split": halves, "objects": idle, "ticks": source("a", "日"),
    "rows": source({"k": 1}, "text", b"bytes"),
}  # fmt: skip


COMMANDS = ("DROP", "SET_TTL", "CANCEL", "__list_actions")


def fragments(chance, name, others):
    """A node: a leaf, or children among ``others``; whole, or with something missing."""
    count = chance.choice([1, 1, 2, 3])
    kind = chance.choice(["text", "text", "ref", "json", "marker", "children", "children", "empty"])
    found = []
    for seq in range(count):
        more = seq < count - 1 or chance.random() < 0.1
        if kind == "children":
            found.append(K(name, seq, *chance.choices(others, k=chance.randrange(3)), more=more))
        elif kind == "empty":
            found.append(F(name, seq, more=more))
        else:
            media_type = {"json": JSON, "marker": END_OF_TURN}.get(kind, TEXT) if seq == 0 else None
            uri = chance.choice(["data:,hi", "data:;base64,%", "https://x/y", "ftp://x"]) if kind == "ref" else None
            text = chance.choice(["", "x", "12", "\u65e5"]) if uri is None else None
            found.append(F(name, seq, text, ref=uri, type=media_type, more=more))
    return found if chance.random() < 0.9 else found[1:]


def action(chance, names, number):
    """One whose outputs are its own."""
    name = chance.choice(sorted(INPUTS))
    inputs = {one: chance.choice(names) for one in INPUTS[name]}
    outputs = {one: f"r{number}{one[0]}" for one in OUTPUTS.get(name, ("out",)) if chance.random() < 0.9}
    if "out" in outputs:
        outputs["out"] = f"r{number}"
    return A(name, inputs, outputs | ({"__status__": f"s{number}"} if chance.random() < 0.5 else {}))


def command(chance, names, number):
    """One of an extension."""
    name, node = chance.choice(COMMANDS), chance.choice(names)
    if name == "__list_actions":
        return A(name, {}, {"actions": f"list{number}"})
    configs = [duration_pb2.Duration(seconds=chance.randrange(4))] if name == "SET_TTL" else []
    return A(name, {"output" if name == "CANCEL" else "node": node}, configs=configs)


def parts_of(chance, extensions):
    """A conversation that hardly breaks a rule; its parts in any order."""
    nodes = [f"n{number}" for number in range(chance.randrange(1, 6))]
    outputs = [f"r{number}" for number in range(5)] + ["s0", "s1", "r0l", "r1r", "list0"]
    parts = []
    for place, name in enumerate(nodes):
        parts += fragments(chance, name, [*nodes[place + 1 :], *outputs[:2], "z"])
    for number in range(chance.randrange(1, 5)):
        made = action(chance, [*nodes, *outputs[:number]], number)
        if "partial" not in extensions:
            kept = [one for one in made.outputs if one.name != "__status__"]
            del made.outputs[:]
            made.outputs.extend(kept)
        parts.append(made)
    chance.shuffle(parts)
    if "drop" in extensions:
        for number in range(chance.randrange(3)):
            made = command(chance, [*nodes, *outputs], number)
            if made.name in ("DROP", "CANCEL") or "ttl" in extensions:
                parts.insert(chance.randrange(len(parts) + 1), made)
    return parts


EVENTS = (None, None, "time", "piece", "last", "failure")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def played(parts, extensions, settings, events):
    """A conversation of these parts, and what happens between them."""
    clock = Clock()
    specs = [upper, add, either, several, *(spec_of(one) for one in (join, relay, objects, split))]
    c = Conversation(
        *specs,
        ticks,
        spec_of(rows, retain=settings.pop("retain")),
        models=MODELS,
        extensions=extensions,
        clock=clock,
        **settings,
    )
    for part, event in zip(parts, events, strict=True):
        if not c.is_open:
            break
        c.send(part)
        if event == "time" and c.timer is not None:
            clock.now += c.timer.delay_s
            c.elapse()
        elif event and c.fetches:
            c.fetched(b"f", last=event == "last") if event != "failure" else c.fetched(error=reference_failed("no"))
        if c.is_open:
            graph = c.session.graph
            assert graph.held == sum(node.charged for node in graph.nodes.values())
    if c.is_open:
        c.half_close()
    while c.is_open and c.fetches:
        c.fetched(b"end")
    return c


@pytest.mark.timeout(20)  # four seconds of computing
@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 2), st.booleans(),
    st.sampled_from(["drop, ttl, partial-failures, cancel, discovery", "partial-failures", "cancel, drop", ""]),
)  # fmt: skip
def test_E011_E114_any_session_ends_once_and_without_an_exception(seed, running, window, retain, extensions):
    """With OK or one status of the table, and with nothing left behind; what was not dropped is complete."""
    chance = random.Random(seed)
    parts = parts_of(chance, extensions)
    settings = {"actions_running": running, "window": window, "retain": retain, "session_bytes": 20_000, "depth": 6}
    c = played(parts, extensions, settings, [chance.choice(EVENTS) for _ in parts])
    assert c.ending is not None, "the session waits for nothing"
    if c.ending.error is not None:
        assert str(c.ending.error).startswith("Evergreen: ")
    assert (c.session.graph.nodes, c.session.graph.held, c.session.running) == ({}, 0, {})
    if c.is_ok and not any(isinstance(one, pb.Action) and one.name in ("DROP", "SET_TTL") for one in parts):
        assert all(c.sent.is_complete(name) for name in c.sent.ids)
