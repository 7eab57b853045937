"""`Extensions`: requests beyond the specification, which the metadata ``evergreen-extensions`` asks for (E-118).

======================= ===========================================================================================
``drop``                the action ``DROP`` releases a node (E-119)
``ttl``                 the action ``SET_TTL`` releases a node, and nodes that only it refers to, later (E-120)
``partial-failures``    an action's failure no longer ends the session; ``__status__`` reports it (E-121)
``cancel``              the action ``CANCEL`` ends another one (E-122)
``discovery``           the action ``__list_actions`` lists the actions (E-123)
``accept``              a configuration names the accepted media types of outputs (E-124)
======================= ===========================================================================================
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from google.protobuf import duration_pb2

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.core.steps import Cancel, CloseOutput, Send, Step, Timer
from invoker.errors import Cancelled, InvocationError, Status
from invoker.errors.wording import quoted
from invoker.message import Headers, Message
from invoker.protocols.evergreen.configs import ActionConfig
from invoker.protocols.evergreen.errors import EvergreenError, bad_action
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.lifetimes import Lifetimes
from invoker.protocols.evergreen.listing import describe
from invoker.protocols.evergreen.nodes import Node
from invoker.protocols.evergreen.running import RunningAction
from invoker.protocols.evergreen.settings import EXTENSIONS
from invoker.protocols.evergreen.table import Table
from invoker.protocols.evergreen.wire import leaf_frame, metadata_of, prefix_of
from invoker.protocols.evergreen.writers import Form, Writer

_STATUS = "__status__"
_STATUS_TYPE = "application/x-protobuf; type=google.rpc.Status"


def accepted(metadata: Headers) -> tuple[str, ...]:
    """The supported extensions among those that a client asks for."""
    asked = {token.strip().lower() for token in metadata.get("evergreen-extensions", "").split(",")}
    return tuple(one for one in EXTENSIONS if one in asked)


class Extended(Protocol):
    """The methods of a session that its extensions need; see `EvergreenSession`."""

    graph: Graph
    table: Table
    running: dict[str, RunningAction]
    waiting: deque[RunningAction]

    def own(self, action: RunningAction, id: str) -> Node:
        """Make a node an output of an action."""


class Extensions:
    """The extensions of one session.

    Args:
        session: The session.
        names: The extensions that were negotiated.
        clock: A monotonic clock, in seconds.

    Attributes:
        is_partial: Whether an action may fail without ending the session.
    """

    def __init__(self, session: Extended, names: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._names = frozenset(names)
        self._takers: dict[str, Callable[[pb.Action, list[Step]], None]] = {}
        if "drop" in self._names:
            self._takers["DROP"] = self._drop
        if "ttl" in self._names:
            self._takers["SET_TTL"] = self._set_ttl
        if "cancel" in self._names:
            self._takers["CANCEL"] = self._cancel
        if "discovery" in self._names:
            self._takers["__list_actions"] = self._list
        self.is_partial = "partial-failures" in self._names
        self._lifetimes = Lifetimes(session.graph, clock)

    def takes(self, action: pb.Action, steps: list[Step]) -> bool:
        """Perform an action of an extension; False if it is no such action."""
        taker = self._takers.get(action.name)
        if taker is None:
            return False
        taker(action, steps)
        return True

    # Partial failures.

    def without_status(self, message: pb.Action, action: RunningAction) -> tuple[pb.Action, str]:
        """The action without its output ``__status__``, and the id of that output; the id is empty if there is none."""
        if not self.is_partial or all(one.name != _STATUS for one in message.outputs):
            return message, ""
        made = pb.Action()
        made.CopyFrom(message)
        del made.outputs[:]
        made.outputs.extend(one for one in message.outputs if one.name != _STATUS)
        ids = [one.id for one in message.outputs if one.name == _STATUS]
        if len(ids) > 1 or not ids[0]:
            what = "twice" if len(ids) > 1 else "with an empty node id"
            raise bad_action(f"{action.where} has the output {quoted(_STATUS)} {what}")
        return made, ids[0]

    def contains(self, action: RunningAction, error: InvocationError, steps: list[Step]) -> bool:
        """End the outputs of an action that failed, if the session may continue; returns whether it may."""
        is_limit = isinstance(error, EvergreenError) and error.status is Status.RESOURCE_EXHAUSTED
        if not action.is_cancelled and (not self.is_partial or is_limit):
            return False
        if self.is_partial:
            self._fault(action, error)
        for writer in action.writers.values():
            writer.end(steps)
        self.tell_status(action, error, steps)
        return True

    def _fault(self, action: RunningAction, error: InvocationError) -> None:
        graph = self._session.graph
        for writer in action.writers.values():
            if not writer.is_ended:
                node = writer.node
                node.fault = EvergreenError(
                    Status.FAILED_PRECONDITION,
                    "Evergreen: Incomplete Input",
                    f"node {quoted(node.id)} is an output of {action.where}, which failed with {error.status.name}",
                )
                graph.wake(node)

    def tell_status(self, action: RunningAction, error: InvocationError | None, steps: list[Step]) -> None:
        """Write the status of an action to its output ``__status__``, if the client has listed it."""
        node = action.status
        if node is None or node.is_dropped:
            return
        from google.rpc import status_pb2  # imported only if a client asks for a status

        status = status_pb2.Status()
        if error is not None:
            status.code, status.message = int(error.status), str(error)
            if isinstance(error, Cancelled):
                status.message = f"Evergreen: Action Cancelled: {action.where}: {error.detail}"
        data, metadata = status.SerializeToString(), metadata_of(_STATUS_TYPE, {})
        steps.append(Send(leaf_frame(prefix_of(node.id), 0, data, continued=False, metadata=metadata)))
        self._session.graph.grow(node, data, _STATUS_TYPE, is_last=True)

    # Actions.

    def _node_id(self, action: pb.Action, name: str) -> str:
        if action.outputs or [one.name for one in action.inputs] != [name] or not action.inputs[0].id:
            given = ", ".join(one.name for one in action.inputs) or "no input"
            raise bad_action(
                f"action {action.name!r} takes one input {name!r} and has no outputs; it was given {given}"
            )
        return action.inputs[0].id

    def _drop(self, action: pb.Action, steps: list[Step]) -> None:
        node = self._session.graph.nodes.get(self._node_id(action, "node"))
        if node is not None:
            self._release([node], steps)

    def _release(self, nodes: Sequence[Node], steps: list[Step]) -> None:
        roots = self._roots() if nodes else set()
        for node in nodes:
            if node.is_dropped:
                continue
            if isinstance(node.owner, RunningAction):
                self._close_output(node.owner, node, steps)
            self._lifetimes.drop(node, roots)

    def _close_output(self, owner: RunningAction, node: Node, steps: list[Step]) -> None:
        for index, writer in owner.writers.items():
            if writer.node is not node or writer.is_ended:
                continue
            writer.close()
            if owner.is_started:
                steps.append(CloseOutput(owner.key, index))
            else:
                owner.unwant(index)

    def _roots(self) -> set[Node]:
        """The root nodes that accepted actions may still read."""
        actions = (*self._session.running.values(), *self._session.waiting)
        cursors = (one.cursor for action in actions for one in action.inputs)
        return {cursor.root for cursor in cursors if not cursor.is_closed}

    def released(self) -> None:
        """Release the dropped nodes that were kept for an action which has ended."""
        if self._names:
            self._lifetimes.settle(self._roots())

    def _set_ttl(self, action: pb.Action, steps: list[Step]) -> None:
        id = self._node_id(action, "node")
        duration = None
        with suppress(ValueError):
            duration = (
                ActionConfig(action.configs[0]).unpack(duration_pb2.Duration) if len(action.configs) == 1 else None
            )
        if duration is None:
            raise bad_action(
                f"action 'SET_TTL' on node {quoted(id)} needs one configuration of type google.protobuf.Duration"
            )
        node = self._session.graph.nodes.get(id)
        if node is None or node.is_dropped:
            return
        self._lifetimes.set(node, duration.seconds + duration.nanos / 1e9)
        self.elapsed(steps)

    def elapsed(self, steps: list[Step]) -> None:
        """Release expired nodes, and set the timer for the next ones."""
        self._release(self._lifetimes.expired(), steps)
        delay_s = self._lifetimes.next_s()
        if delay_s is not None:
            steps.append(Timer(delay_s))

    def _cancel(self, action: pb.Action, steps: list[Step]) -> None:
        node = self._session.graph.nodes.get(self._node_id(action, "output"))
        owner = node.owner if node is not None else None
        if not isinstance(owner, RunningAction) or owner.is_cancelled:
            return
        error = Cancelled("the client cancelled the action")
        if owner.key in self._session.running:
            owner.is_cancelled = owner.is_failing = True
            steps.append(Cancel(owner.key, error))
        elif owner in self._session.waiting:
            owner.is_cancelled = True
            self._session.waiting.remove(owner)
            owner.close()
            self._session.graph.held -= owner.charged
            self.contains(owner, error, steps)
            self.released()

    def _list(self, message: pb.Action, steps: list[Step]) -> None:
        session = self._session
        action = RunningAction(0, message.name)
        if message.inputs or [one.name for one in message.outputs] != ["actions"]:
            raise bad_action("action '__list_actions' takes no inputs and has one output, 'actions'")
        session.table.check_parameter(message.outputs[0].name, message.outputs[0].id, action.where, "output")
        node = session.own(action, message.outputs[0].id)
        writer = Writer(action, node, Form.ITEMS, session.graph)
        for name, spec in session.table.names.items():
            text = json.dumps(describe(name, spec), ensure_ascii=False)
            writer.write(Message(text.encode(), media_type="application/json"), steps)
        writer.end(steps)

    # Requests in configurations.

    def accepts(self, configs: Sequence[ActionConfig], action: RunningAction) -> dict[str, str]:
        """The media ranges that a configuration accepts, by output."""
        if "accept" not in self._names:
            return {}
        found: dict[str, str] = {}
        for config in configs:
            if config.type_name != "google.protobuf.Struct":
                continue
            try:
                asked: Any = (config.to_dict() or {}).get("accept")
            except ValueError as error:
                raise bad_action(f"{action.where}: a configuration cannot be read: {error}") from None
            if asked is None:
                continue
            if not isinstance(asked, dict) or not all(isinstance(one, str) for one in asked.values()):
                raise bad_action(
                    f"{action.where}: the configuration 'accept' must map outputs to lists of media ranges"
                )
            found.update(asked)
        return found
