"""What is said of a request in the log: names, types and shapes, never values (G-105, G-106)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from invoker.protocols.graphpipe.binding import Given
from invoker.tensors import InferRequest, MetadataRequest, Tensor, spelled

__all__ = ["tell_asked", "tell_given"]

_MOST: Final = 8
_NAME_SIGNS: Final = 40


def tell_given(given: Sequence[Given]) -> str:
    """The inputs of a request that is right."""
    return _told([(one.port.name, one.tensor) for one in given[: _MOST + 1]])


def tell_asked(request: InferRequest | MetadataRequest | None) -> str:
    """A request as its peer says it, whose names may be wrong; None: it could not be read."""
    if request is None:
        return "nothing"
    if isinstance(request, MetadataRequest):
        return "metadata"
    tensors = request.tensors[: _MOST + 1]
    names = (*request.input_names, *[""] * len(tensors))
    return _told([(ascii(name[:_NAME_SIGNS]) if name else "", one) for name, one in zip(names, tensors, strict=False)])


def _told(several: Sequence[tuple[str, Tensor]]) -> str:
    shown = (f"{name}:{spelled(one.type)}{list(one.shape)}" for name, one in several[:_MOST])
    return " ".join(("infer", *shown, *(["..."] if len(several) > _MOST else [])))
