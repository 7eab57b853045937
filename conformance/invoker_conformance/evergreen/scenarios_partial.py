"""Failures that do not end the session, and actions that are cancelled, if both are negotiated. Catalogue 2.9."""

from __future__ import annotations

import grpc
from google.protobuf.wrappers_pb2 import Int32Value

from invoker_conformance.evergreen.actions import HI, upper
from invoker_conformance.evergreen.frames import JSON, TEXT, A, F, Part
from invoker_conformance.evergreen.rules import ACT, FRAG, GRAPH
from invoker_conformance.evergreen.scenarios_extensions import cancel, negotiated
from invoker_conformance.evergreen.session import Session
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.faults import Fault
from invoker_conformance.scenario import scenario

STATUS = "application/x-protobuf; type=google.rpc.Status"


def status_of(session: Session, root: str) -> tuple[int, bytes]:
    """The code and the bytes of a status node."""
    leaves = session.outputs.leaves(root)
    types = [leaf.metadata.mimetype.replace("; ", ";") for leaf in leaves]
    if types != [STATUS.replace("; ", ";")]:
        raise session.failure(f"leaves of {types} in {root!r}", f"one of {STATUS}")
    return Int32Value.FromString(leaves[0].data).value, leaves[0].data  # field 1 of google.rpc.Status is its code


def has_status(session: Session, root: str, code: grpc.StatusCode, *mentions: str) -> None:
    """Check that a status node has this status."""
    number, data = status_of(session, root)
    if number != code.value[0] or any(text.encode() not in data for text in mentions):
        raise session.failure(f"code {number}, {data!r} in {root!r}", f"code {code.value[0]} {code.name} {mentions}")


@scenario("ET-89", "E-121", "E-128", function=("stumble", "upper"))
async def partial_failure_status_node(stage: Stage) -> None:
    """A failing action ends its outputs and writes its status; the session continues. Success is code 0."""
    async with negotiated(stage, "partial-failures") as session:
        boom = A("stumble", {"count": "n"}, {"out": "r", "__status__": "st"})
        await session.send(F("n", m=JSON, t="2"), boom)
        await session.values("st")
        has_status(session, "st", grpc.StatusCode.UNKNOWN, "boom")
        await session.send(A("upper", {"text": "p"}, {"out": "s", "__status__": "ok"}), HI)
        await session.succeeds(r=["ab"], s=["HI"])
        has_status(session, "ok", grpc.StatusCode.OK)


@scenario("ET-89", "E-121", function=("collapse", "items"))
async def partial_failure_dependant(stage: Stage) -> None:
    """An action that reads a failed output fails with a status of its own; an unread one fails nothing."""
    async with negotiated(stage, "partial-failures") as session:
        await session.send(A("items", {"values": "r"}, {"out": "s", "__status__": "st"}))
        await session.send(A("collapse", {"wanted": "p"}, {"out": "r"}), HI)
        await session.send(A("collapse", {"wanted": "p"}, {"out": "unread"}))
        await session.succeeds(r=[], unread=[])
        has_status(session, "st", grpc.StatusCode.FAILED_PRECONDITION)


@scenario("ET-89", "E-121", "E-113", function=("upper", "items"))
async def partial_failure_of_bad_and_missing_input(stage: Stage) -> None:
    """A bad input, and one that never comes, are failures of their action: the session ends with OK."""
    async with negotiated(stage, "partial-failures") as session:
        await session.send(A("upper", {"text": "p"}, {"out": "r", "__status__": "bad"}), F("p", m=TEXT, d=b"\xff"))
        await session.values("bad")
        has_status(session, "bad", grpc.StatusCode.INVALID_ARGUMENT, "Bad Input")
        await session.send(A("upper", {"text": "absent node"}, {"out": "s", "__status__": "miss"}))
        await session.send(HI_Q, upper("q", "t"))
        await session.succeeds(t=["HI"])
        has_status(session, "miss", grpc.StatusCode.FAILED_PRECONDITION, "absent node")


HI_Q = F("q", m=TEXT, t="hi")


@scenario("ET-89", "E-121", function="upper")
async def partial_protocol_error_still_aborts(stage: Stage) -> None:
    """Broken rules of fragments and actions still end the session."""
    for frame, fault in ((F("p", -1, t="x"), FRAG), (A("upper", {"no": "p"}, {"out": "r"}), ACT)):
        async with negotiated(stage, "partial-failures") as session:
            await session.send(frame)
            await session.fails(fault)


@scenario("ET-89", "E-121", function="upper")
async def status_outputs_need_negotiation(stage: Stage) -> None:
    """Without the extension ``__status__`` is an ordinary name of an output."""
    await stage.fails(ACT, HI, A("upper", {"text": "p"}, {"out": "r", "__status__": "st"}))
    await stage.succeeds(HI, A("upper", {"text": "p"}, {"__status__": "r"}), r=["HI"])


@scenario("E-121", "E-081", "E-069", function="upper")
async def status_nodes_are_outputs(stage: Stage) -> None:
    """The id of a status node must be new, too, and an action may not wait for its own status."""
    own = A("upper", {"text": "st"}, {"out": "r", "__status__": "st"})
    used = A("upper", {"text": "p"}, {"out": "r", "__status__": "p"})
    circle = [A("upper", {"text": f"s{2 - n}"}, {"out": f"r{n}", "__status__": f"s{n}"}) for n in (0, 2)]
    cases: list[tuple[list[Part], Fault]] = [([own], ACT), ([HI, used], ACT), ([*circle], GRAPH)]
    for frames, fault in cases:
        async with negotiated(stage, "partial-failures") as session:
            await session.send(*frames)
            await session.fails(fault)


@scenario("ET-89", "E-121", function=("collapse", "drip"))
async def partial_failure_spares_others(stage: Stage) -> None:
    """When one action fails the others of its session continue."""
    async with negotiated(stage, "partial-failures") as session:
        await session.send(F("c", m=JSON, t="5"), F("s", m=JSON, t="0.1"), HI)
        await session.send(A("drip", {"count": "c", "seconds": "s"}, {"out": "r"}))
        await session.fragment()
        await session.send(A("collapse", {"wanted": "p"}, {"out": "x"}))
        await session.succeeds(r=["01234"], x=[])


@scenario("ET-90", "E-122", function=("drip", "pieces", "marks"))
async def cancelled_action_feeds_a_short_node(stage: Stage) -> None:
    """A reader of an output of a cancelled action gets the items so far, and its end."""
    watch = await stage.watch("drip.closed", "drip.completed")
    async with negotiated(stage, "cancel") as session:
        await session.send(F("c", m=JSON, t="1000"), F("s", m=JSON, t="0.05"))
        await session.send(A("drip", {"count": "c", "seconds": "s"}, {"out": "r"}))
        await session.send(A("pieces", {"text": "r"}, {"out": "t"}))
        while not session.outputs.pieces("t"):
            await session.fragment()
        await session.send(cancel("r"))
        await session.succeeds()
        first, second = session.read("r"), session.read("t")
        if first != second or len(first) != 1 or not first[0].startswith("0"):
            raise session.failure(f"{first} in 'r', {second} in 't'", "the same beginning of 0123... in both")
    await watch.reaches("drip.closed", 1)
    await watch.stays("drip.completed")


@scenario("ET-90", "E-122", function=("endless", "marks"))
async def cancel_action_by_output_id(stage: Stage) -> None:
    """An action is cancelled by one of its outputs: its clean-up runs, the output ends, the session continues."""
    watch = await stage.watch("endless.closed", "endless.completed")
    async with negotiated(stage, "cancel", "partial-failures") as session:
        await session.send(A("endless", {}, {"out": "e", "__status__": "st"}))
        await session.fragment()
        await session.send(cancel("e"))
        await session.values("st", timeout_s=10.0)
        await session.succeeds(timeout_s=10.0)
        has_status(session, "st", grpc.StatusCode.CANCELLED)
    await watch.reaches("endless.closed", 1)
    await watch.stays("endless.completed")


@scenario("ET-90", "E-122", function="upper")
async def cancel_finished_or_unknown(stage: Stage) -> None:
    """A cancel of a finished or unknown action does nothing; an action that waits is cancelled, too."""
    async with negotiated(stage, "cancel") as session:
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        await session.send(cancel("r"), cancel("never seen"), upper("absent", "s"), cancel("s"))
        await session.succeeds(r=["HI"], s=[])
