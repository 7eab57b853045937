"""`Talk`: one conversation that a peer means to have, whatever its protocol."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from invoker.author.spec import FunctionSpec
from tests.reference.functions import MOST

JSON = "application/json"

Item = tuple[Hashable, Any]
"""What a peer reads: of which output, or None where it is of the whole answer; and what."""


@dataclass(frozen=True)
class Talk:
    """One conversation.

    Attributes:
        session: Makes its session.
        frames: What the peer sends.
        read: What it makes of the frames that it is sent.
    """

    session: Callable[[], Any]
    frames: tuple[Any, ...]
    read: Callable[[Sequence[Any]], list[Item]]


_TEXTS = st.sampled_from(["a", "b", "", "x", "xx", "é", "a\nb"])


def values_of(spec: FunctionSpec, count: int) -> st.SearchStrategy[list[tuple[int, str]]]:
    """Texts, each for one of the first inputs of a function."""
    if not count:
        return st.just([])
    most = MOST.get(spec.name, 7)
    return st.lists(st.tuples(st.integers(0, count - 1), _TEXTS), max_size=most + (most == 1))
