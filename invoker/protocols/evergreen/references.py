"""`References`: resolves leaves whose bytes are elsewhere, when an action first reads them; once a session (E-056)."""

from __future__ import annotations

import itertools

from invoker.core.steps import Fetch, Fetched, Step
from invoker.errors import InvocationError
from invoker.errors.wording import quoted
from invoker.fetch.data_uri import decode, scheme_of
from invoker.fetch.errors import ReferenceRefused
from invoker.protocols.evergreen.errors import EvergreenError, translated
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.nodes import Reference

_FETCHED = ("file", "http", "https")
"""URI schemes that the driver fetches, if its policy allows."""


class References:
    """The references of one session.

    Args:
        graph: The graph, in which the fetched bytes count.

    Attributes:
        settings: The settings of the session.
    """

    __slots__ = ("_graph", "_most", "_numbers", "_open", "settings")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.settings = graph.settings
        self._most = graph.settings.reference_bytes
        self._open: dict[str, Reference] = {}
        self._numbers = itertools.count(1)

    def ask(self, reference: Reference, steps: list[Step]) -> bool:
        """Start to resolve a reference; returns True if its bytes are available at once.

        Raises:
            EvergreenError: The scheme is refused, or the reference is malformed.
        """
        if reference.is_asked:
            return False
        reference.is_asked = True
        uri = reference.uri
        try:
            scheme = scheme_of(uri)
            if scheme == "data":
                data = decode(uri, self._most)
                self._graph.charge(reference.node, len(data))
                reference.chunks.append(data)
                reference.is_done = True
                return True
            if scheme not in _FETCHED:
                raise ReferenceRefused(
                    f"the scheme {quoted(scheme)} is not supported; data is, and file and http if the "
                    "operator allows them"
                )
        except InvocationError as error:
            reference.error = _named(error, reference)
            raise reference.error from None
        key = f"r{next(self._numbers)}"
        self._open[key] = reference
        steps.append(Fetch(key, uri, self._most))
        return False

    def fetched(self, event: Fetched) -> None:
        """Add the bytes that the driver fetched, or its error, to the reference.

        Raises:
            EvergreenError: The session would hold too many bytes.
        """
        reference = self._open.get(event.key)
        if reference is None:
            return
        if event.data and reference.node.fault is None:
            self._graph.charge(reference.node, len(event.data))
            reference.chunks.append(event.data)
        if event.error is not None:
            reference.error = _named(event.error, reference)
            reference.chunks.clear()
        elif event.is_last:
            reference.is_done = True
        if event.is_last or event.error is not None:
            del self._open[event.key]
        self._graph.wake(reference.node)


def _named(error: InvocationError, reference: Reference) -> InvocationError:
    where = f"node {quoted(reference.node.id)}"
    if isinstance(error, EvergreenError):
        return EvergreenError(error.status, error.title, f"{where}: {error.detail}")
    return translated(error, where)
