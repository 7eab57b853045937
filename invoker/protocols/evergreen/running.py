"""`RunningAction`: an action that was accepted, until it has finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from invoker.core.steps import Open, Terms
from invoker.errors.wording import Place, quoted
from invoker.message import Headers
from invoker.protocols.evergreen.inputs import Input
from invoker.protocols.evergreen.nodes import Node
from invoker.protocols.evergreen.table import Binding
from invoker.protocols.evergreen.writers import Writer


class RunningAction:
    """One action: one invocation.

    Args:
        number: Its ordinal in the session, from 1.
        name: The name as the client named it.

    Attributes:
        key: The key of its invocation, in commands and events.
        where: The action, for texts of errors.
        open: The step that starts it; None for an action that the session answers itself.
        inputs: The inputs by index.
        writers: The writers by index of the output.
        status: The node of its ``__status__``, if the client listed one.
        charged: Bytes that its configurations count in the session's sum.
        is_started: Whether its invocation was opened.
        is_failing: Whether it was asked to end with an error.
        is_cancelled: Whether the client cancelled it by the extension.
    """

    __slots__ = ("charged", "inputs", "is_cancelled", "is_failing", "is_started", "key", "name", "number", "open",
                 "status", "where", "writers")  # fmt: skip

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.key = f"a{number}"
        self.where = f"action {quoted(name)} #{number}"
        self.open: Open | None = None
        self.inputs: Sequence[Input] = ()
        self.writers: dict[int, Writer] = {}
        self.status: Node | None = None
        self.charged = 0
        self.is_started = self.is_failing = self.is_cancelled = False

    @property
    def nodes(self) -> list[Node]:
        """The nodes of its outputs that the client listed, and of its status."""
        found = [writer.node for writer in self.writers.values()]
        return found if self.status is None else [*found, self.status]

    @property
    def names(self) -> dict[Place, str]:
        """The client's names of inputs and outputs, by their places."""
        found = {Place("input", one.index): f"input {quoted(one.name)}" for one in self.inputs}
        found.update((Place("output", index), f"output {quoted(one.node.id)}") for index, one in self.writers.items())
        return found

    @property
    def is_awaited(self) -> bool:
        """Whether another action waits for one of its outputs."""
        return any(node.waiters for node in self.nodes)

    @property
    def awaits(self) -> list[Input] | None:
        """The inputs that its function waits for, if it waits for inputs only.

        None if it can continue without more input.
        """
        waited = [one for one in self.inputs if one.is_waited_for and not one.is_ended]
        for one in waited:
            if one.is_stalled or one.cursor.asked is not None or one.awaited is None:
                return None
        return waited or None

    def unwant(self, index: int) -> None:
        """Note that an output has no reader, before the invocation is opened."""
        assert self.open is not None
        self.open = msgspec.structs.replace(self.open, unwanted=(*self.open.unwanted, index))

    def close(self) -> None:
        """Stop the inputs of an action that is over, and release its configurations."""
        self.open = None
        for one in self.inputs:
            one.close()


def open_step(
    key: str, binding: Binding, *, metadata: Headers, configs: tuple[Any, ...], accepts: dict[str, str]
) -> Open:
    """The step that starts the invocation of a bound action.

    Args:
        key: The key of the invocation.
        binding: The bound function, inputs and outputs.
        metadata: The metadata of the session.
        configs: Metadata for the function's context.
        accepts: Media ranges by the name of the output (E-124).
    """
    spec = binding.spec
    count = len(binding.outputs) if spec.open_outputs else len(spec.outputs)
    ranges = ("*/*",) * count
    if accepts:
        asked = {index: accepts.get(one.name, "") for index, one, _ in binding.outputs}
        ranges = tuple(asked.get(index) or "*/*" for index in range(count))
    return Open(
        key,
        spec.name,
        accepts=ranges,
        input_names=binding.bound,
        output_names=binding.output_names,
        metadata=metadata,
        bound=binding.bound,
        terms=Terms.LOOSE,
        unwanted=binding.unwanted,
        configs=configs,
        protocol="evergreen",
    )
