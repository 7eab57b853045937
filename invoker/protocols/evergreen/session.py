"""The Evergreen session: one gRPC call, in which the client sends nodes and actions; each action is an invocation.

Theory. The graph (`Graph`) is built from fragments. An action is bound (`Table`), opened, and fed by one `Input` for
each parameter, which reads its node depth first, as far as the node has come. A `Writer` sends each value of the
function to the client and stores it in the graph, where other actions may read it while this one still runs. Within one
message, fragments are handled before actions; the order of messages makes no difference (E-009).

By the specification, any error ends the whole session with one status. Only the extension `partial-failures` lets a
session continue after the failure of an action.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence

from google.protobuf.message import DecodeError as WireError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.spec import FunctionSpec
from invoker.core.steps import Cancel, Close, Elapsed, Emitted, Event, Fetched, Finished, OutputEnded, Step, Wants
from invoker.errors import Cancelled, InvocationError, Status
from invoker.errors.wording import quoted
from invoker.message import EMPTY, Headers
from invoker.protocols.evergreen.configs import ActionConfig
from invoker.protocols.evergreen.errors import EvergreenError, bad_action, bad_fragment, incomplete, limit, translated
from invoker.protocols.evergreen.extensions import Extensions, accepted
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.inputs import Input
from invoker.protocols.evergreen.nodes import Node, Owner, Waiter
from invoker.protocols.evergreen.options import nodes_of
from invoker.protocols.evergreen.references import References
from invoker.protocols.evergreen.running import RunningAction, open_step
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.table import Binding, Table
from invoker.protocols.evergreen.writers import Writer, form_of

log = logging.getLogger(__name__)

SERVICE = "evergreen.v2.EvergreenService"
METHOD = "StartSession"

_FREE, _WEIGHT = 16, 256
"""Each parameter and configuration of an action beyond the first few counts this many bytes until the action ends."""


class EvergreenSession:
    """Translates the messages of one session; frames are serialised ``SessionMessage``s.

    Args:
        catalog: The functions that are served, or a `Table` of them.
        metadata: The metadata of the call, which names the extensions and is passed to functions' contexts.
        settings: The limits of the session, and the names of actions and inputs.

    Attributes:
        headers: The initial metadata, to be sent at once (E-014).
        stalled: Inputs whose window is used up; the driver passes `Wants` to the session when their functions have
            caught up.
        is_full: Always False: a session that would hold too many bytes ends instead.
        is_half_closed: Whether the client has half-closed.
        is_closed: Whether the session has ended.
        graph: The nodes of the session.
        running: Actions whose invocations were opened, by key of the invocation.
        waiting: Actions that wait for a running one to end.
    """

    def __init__(
        self,
        catalog: Iterable[FunctionSpec] | Table,
        metadata: Headers = EMPTY,
        settings: EvergreenSettings | None = None,
    ) -> None:
        self.settings = settings or (catalog.settings if isinstance(catalog, Table) else EvergreenSettings())
        self.table = catalog if isinstance(catalog, Table) else Table(catalog, self.settings)
        self.graph = Graph(self.settings)
        self.references = References(self.graph)
        self.stalled: set[tuple[str, int]] = set()
        self.running: dict[str, RunningAction] = {}
        self.waiting: deque[RunningAction] = deque()
        self.is_full = self.is_half_closed = False
        self.is_closed = False
        self._metadata = metadata
        self._count = 0
        asked = accepted(metadata)
        self.headers: tuple[tuple[str, str], ...] = (("evergreen-extensions", ", ".join(asked)),) if asked else ()
        self.extensions = Extensions(self, asked)

    @property
    def held(self) -> int:
        """How many bytes the session holds."""
        return self.graph.held

    @property
    def hears_waits(self) -> bool:
        """Whether waits must be reported: after the half-close they show when no action can continue (E-114)."""
        return self.is_half_closed

    # Messages of the client.

    def receive(self, frame: bytes) -> Sequence[Step]:
        """Translate one message; an invalid message closes the session."""
        steps: list[Step] = []
        if self.is_closed:
            return steps
        try:
            try:
                message = pb.SessionMessage.FromString(frame)
            except WireError:
                raise bad_fragment(f"{len(frame)} bytes were received that are not a valid SessionMessage") from None
            accept = self.graph.accept
            for fragment in message.node_fragments:
                accept(fragment)
            for action in message.actions:
                self._act(action, steps)
            self._go_on(steps)
        except EvergreenError as error:
            self.abort(error, steps)
        return steps

    def half_close(self) -> Sequence[Step]:
        """Translate the half-close of the client; running actions may finish (E-004, E-005)."""
        steps: list[Step] = []
        if not self.is_closed:
            self.is_half_closed = True
            try:
                self._see_to_end(steps)
                self._go_on(steps)
            except EvergreenError as error:
                self.abort(error, steps)
        return steps

    # Events of invocations and of the driver.

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of one of this session's invocations."""
        steps: list[Step] = []
        if self.is_closed:
            return steps
        kind = type(event)
        try:
            if kind is Emitted:
                self._emitted(event, steps)  # type: ignore[arg-type]
            elif kind is Wants:
                self._wants(event, steps)  # type: ignore[arg-type]
            elif kind is OutputEnded:
                self._output_ended(event, steps)  # type: ignore[arg-type]
            elif kind is Finished:
                self._finished(event, steps)  # type: ignore[arg-type]
            elif kind is Fetched:
                self.references.fetched(event)  # type: ignore[arg-type]
            elif kind is Elapsed:
                self.extensions.elapsed(steps)
            if self.graph.woken:
                self._go_on(steps)
        except EvergreenError as error:
            self.abort(error, steps)
        return steps

    def _emitted(self, event: Emitted, steps: list[Step]) -> None:
        action = self.running.get(event.id)
        if action is None or action.is_failing:
            return
        writer = action.writers.get(event.index)
        if writer is None:
            return
        try:
            writer.write(event.message, steps)
        except EvergreenError:
            raise
        except InvocationError as error:
            self.fail(action, error, steps)

    def _output_ended(self, event: OutputEnded, steps: list[Step]) -> None:
        action = self.running.get(event.id)
        if action is not None and event.index in action.writers:
            action.writers[event.index].end(steps)

    def _wants(self, event: Wants, steps: list[Step]) -> None:
        action = self.running.get(event.id)
        if action is None or event.index >= len(action.inputs):
            return
        one = action.inputs[event.index]
        one.is_waited_for = event.waits
        if one.is_stalled:
            one.refill()
            self.stalled.discard((event.id, event.index))
            self._advance(one, steps)
        if event.waits:
            self._see_to_end(steps)

    def _finished(self, event: Finished, steps: list[Step]) -> None:
        action = self.running.pop(event.id, None)
        if action is None:
            return
        action.close()
        self.graph.held -= action.charged
        self.stalled -= {(action.key, index) for index in range(len(action.inputs))}
        if event.error is None:
            for writer in action.writers.values():
                writer.end(steps)
            self.extensions.tell_status(action, None, steps)
        else:
            error = translated(event.error, action.where, action.names)
            if not self.extensions.contains(action, error, steps):
                self.abort(error, steps)
                return
        self.extensions.released()
        self._go_on(steps)
        while self.waiting and len(self.running) < self.settings.actions_running:
            self._start(self.waiting.popleft(), steps)
        self._see_to_end(steps)

    # Actions.

    def _act(self, message: pb.Action, steps: list[Step]) -> None:
        if self.extensions.takes(message, steps):
            return
        self._count += 1
        action = RunningAction(self._count, message.name)
        message, status = self.extensions.without_status(message, action)
        binding = self.table.bind(message, action.where)
        self._claim(action, binding, status)
        action.charged = _weight(message)
        self.graph.charge(None, action.charged)
        if message.configs and not binding.takes_context:
            log.info(
                "%s: the function takes no Context, so %s config(s) are ignored", action.where, len(message.configs)
            )
        configs = tuple(ActionConfig(one) for one in message.configs)
        accepts = self.extensions.accepts(configs, action)
        action.open = open_step(action.key, binding, metadata=self._metadata, configs=configs, accepts=accepts)
        if len(self.running) < self.settings.actions_running or action.is_awaited:
            self._start(action, steps)
        elif len(self.waiting) < self.settings.actions_waiting:
            self.waiting.append(action)
        else:
            raise limit(
                f"{action.where}: {len(self.running)} actions run and {len(self.waiting)} wait, and no more are allowed"
            )

    def _claim(self, action: RunningAction, binding: Binding, status: str) -> None:
        """Find or make the nodes of an action: an input must not be dropped, an output must be new (E-081)."""
        graph, spec = self.graph, binding.spec
        roots = [self._input_node(action, one.name, node_id) for one, node_id in binding.inputs]
        is_mapped = not binding.is_streaming
        are_only = is_mapped and len(roots) > 1
        action.inputs = [
            Input(action, index, one, root, self.references, is_streaming=not is_mapped, is_only=are_only or one.single)
            for index, ((one, _), root) in enumerate(zip(binding.inputs, roots, strict=True))
        ]
        for index, output, node_id in binding.outputs:
            node = self.own(action, node_id, roots)
            form = form_of(spec, output, is_one=is_mapped and len(roots) != 1)
            root = roots[0] if is_mapped and len(roots) == 1 else None
            retain = nodes_of(spec).is_retained(output.name)
            action.writers[index] = Writer(
                action, node, form, graph, retain=retain, root=root, may_send=binding.takes_context
            )
        if status:
            action.status = self.own(action, status, roots)

    def _input_node(self, action: RunningAction, name: str, id: str) -> Node:
        node = self.graph.find(id)
        if node.is_dropped:
            raise bad_action(f"{action.where}, input {quoted(name)}: node {quoted(id)} was dropped")
        return node

    def own(self, action: RunningAction, id: str, roots: Sequence[Node] = ()) -> Node:
        """Make a node an output of an action.

        Raises:
            EvergreenError: The id is in use, or the node would be made from itself.
        """
        node = self.graph.nodes.get(id)
        if node is None:
            node = self.graph.new_output(id)
        elif node in roots:
            raise bad_action(f"{action.where}: output id already in use: {quoted(id)} is one of its inputs")
        elif node.is_received or node.owner is not None or node.is_dropped:
            raise bad_action(f"{action.where}: output id already in use: {quoted(id)}")
        node.owner = action
        for root in roots:
            self.graph.produces(root, node)
        return node

    def _start(self, action: RunningAction, steps: list[Step]) -> None:
        assert action.open is not None
        most = self.settings.actions_running + self.settings.actions_waiting
        if len(self.running) >= most:
            raise limit(f"{action.where}: {most} actions run and wait for each other, and no more are allowed")
        action.is_started = True
        self.running[action.key] = action
        steps.append(action.open)
        # `_go_on` feeds them in a loop, so a chain of actions does not recurse
        self.graph.woken.extend(action.inputs)

    def _advance(self, one: Waiter, steps: list[Step]) -> None:
        action = one.action
        if one.is_ended or action.is_failing or not action.is_started:
            return
        try:
            one.advance(steps)
        except InvocationError as error:
            self.fail(action, error, steps)
            return
        if one.is_stalled:
            self.stalled.add((action.key, one.index))
        elif self.waiting and one.awaited is not None:
            self._start_producer(one.awaited, steps)

    def _start_producer(self, node: Node, steps: list[Step]) -> None:
        """Start the waiting action that produces this node, since a running action waits for the node."""
        producer = node.owner
        if isinstance(producer, RunningAction) and not producer.is_started and producer in self.waiting:
            self.waiting.remove(producer)
            self._start(producer, steps)

    def _go_on(self, steps: list[Step]) -> None:
        """Advance the inputs that were woken."""
        graph = self.graph
        while graph.woken:
            woken, graph.woken = graph.woken, []
            for one in woken:
                self._advance(one, steps)

    # Endings.

    def fail(self, action: Owner, error: InvocationError, steps: list[Step]) -> None:
        """Cancel one action with an error; the rest happens when its invocation has finished.

        Raises:
            EvergreenError: The error ends the whole session, even with ``partial-failures``.
        """
        if isinstance(error, EvergreenError) and error.status is Status.RESOURCE_EXHAUSTED:
            raise error
        if not action.is_failing:
            action.is_failing = True
            steps.append(Cancel(action.key, error))

    def abort(self, error: InvocationError, steps: list[Step]) -> None:
        """End the session with one status; no frame is sent after that (E-011)."""
        steps.extend(Cancel(action.key, Cancelled("the session was aborted")) for action in self.running.values())
        steps.append(Close(error))
        self.release()

    def release(self) -> None:
        """Release everything that the session holds, after any kind of end (E-003)."""
        self.is_closed = True
        for action in self.running.values():
            action.close()
        self.running.clear()
        self.waiting.clear()
        self.stalled.clear()
        self.graph.clear()

    def _see_to_end(self, steps: list[Step]) -> None:
        """After the half-close, end the session if no action is left, or none can continue (E-114)."""
        if self.is_closed or not self.is_half_closed:
            return
        if not self.running and not self.waiting:
            steps.append(Close(None))
            self.release()
            return
        awaited: list[Input] = []
        for action in self.running.values():
            inputs = action.awaits
            if inputs is None or action.is_failing:
                return
            awaited += inputs
        if self.waiting:
            self._start(self.waiting.popleft(), steps)
            return
        self._give_up(awaited, steps)

    def _give_up(self, awaited: list[Input], steps: list[Step]) -> None:
        without_producer = [one for one in awaited if getattr(one.awaited, "owner", None) is None]
        hopeless = without_producer or awaited
        errors = {}
        for one in hopeless:
            node = one.awaited
            assert node is not None
            missing = f"lacks seq {node.count}" if node.is_received else "never came"
            errors[one.action.key] = incomplete(
                f"node {quoted(node.id)} {missing}, and {one.action.where} needs it for its input {quoted(one.name)}"
            )
        if not self.extensions.is_partial:
            self.abort(next(iter(errors.values())), steps)
            return
        for key, error in errors.items():
            self.fail(self.running[key], error, steps)


def _weight(action: pb.Action) -> int:
    """The number of bytes that an action counts in its session until it ends."""
    count = len(action.inputs) + len(action.outputs) + len(action.configs)
    return _WEIGHT * max(0, count - _FREE) + sum(len(one.value) + len(one.type_url) for one in action.configs)
