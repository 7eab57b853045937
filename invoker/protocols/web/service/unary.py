"""`UnaryRequests`: requests that share a head; each body comes in one piece, and each response is one value.

The head is parsed only for the first request, so each further one only adds its body.
"""

from __future__ import annotations

from collections.abc import Sequence

from invoker.core.engine import Engine
from invoker.core.http import Response
from invoker.core.plan import Plan, Plans
from invoker.core.steps import Open
from invoker.core.unary import UnaryCall
from invoker.errors import InvocationError
from invoker.message import Message
from invoker.protocols.web.asking import Asked
from invoker.protocols.web.http import opened, reply


class UnaryRequests:
    """Turns the bodies of requests that share a head into unary calls, and results into responses.

    Args:
        asked: The request that the head describes; neither its body nor its response is a stream.
        engine: Makes the plans of the invocations.
        most_bytes: For a longer body `call` returns None, and a session refuses the body.
    """

    __slots__ = ("_asked", "_engine", "_most_bytes", "_plan", "_plans")

    def __init__(self, asked: Asked, engine: Engine, *, most_bytes: int) -> None:
        self._asked = asked
        self._engine = engine
        self._most_bytes = most_bytes
        self._plans: Plans | None = None  # the codecs and limits for which ``_plan`` was made
        self._plan: Plan | None = None

    def call(self, body: bytes) -> tuple[Plan, UnaryCall] | None:
        """Make the unary call of one request.

        None if the request needs a session, such as for reporting an error.

        Args:
            body: The whole body of the request.
        """
        asked = self._asked
        if self._engine.catalog.renews:
            return None  # each plan loads the function anew, and a session would load it again
        if asked.is_bodiless:
            body = b""
        if len(body) > self._most_bytes:
            return None
        try:
            opening, fed = opened(asked, body)
            is_known = asked.opening is not None and opening is asked.opening[0]
            plan = self._known_plan(opening) if is_known else self._engine.plan(opening)
            if not plan.is_unary or plan.bounds is not None or len(fed) != len(plan.inputs):
                return None
            messages = [fed[0][1]] if len(fed) == 1 else _by_input(fed)
            if len(messages) != len(fed):
                return None
            size = 0
            for decoders, message in zip(plan.inputs, messages, strict=True):
                size += len(message.payload)
                if message.media_type not in decoders.known:
                    decoders.find(message.media_type)  # raises if no codec decodes the body
        except InvocationError:
            return None
        limits = self._engine.limits
        if size > limits.hard_bytes or len(messages) > limits.hard_frames:
            return None  # the query can add values to the body, so the sum is checked, too
        return plan, UnaryCall(opening, messages)

    def response(
        self, names: tuple[str, ...], begins: bytes, message: Message[bytes] | None, error: InvocationError | None
    ) -> Response:
        """The response for an invocation that has ended.

        Args:
            names: The names of the inputs with which the invocation was opened.
            begins: The first byte of the body.
            message: The value that the function returned; None: there was none.
            error: The error with which the invocation ended, if it failed.
        """
        return reply(self._asked, message, error, names, begins)[0]

    def _known_plan(self, opening: Open) -> Plan:
        """The plan of a call whose body is one value; all requests with this head share it."""
        engine = self._engine
        plan, plans = self._plan, engine.plans
        is_known = plan is not None and plans is self._plans
        if plan is None or not is_known or plans.version is not engine.registry.version:
            plan = self._plan = engine.plan(opening)
            self._plans = engine.plans
        return plan


def _by_input(fed: Sequence[tuple[int, Message[bytes]]]) -> list[Message[bytes]]:
    """The messages in the order of their inputs; if an input has several messages, only one of them."""
    by_index = dict(fed)
    return [by_index[index] for index in sorted(by_index)]
