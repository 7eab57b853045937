"""Describes requests for the log: names, types and shapes, but never values (G-105, G-106)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.model import Model
from invoker.tensors import InferRequest, MetadataRequest, Tensor, spelled

_MOST: Final = 8
_NAME_SIGNS: Final = 40


def tell_given(given: Sequence[GivenInput]) -> str:
    """The name, type and shape of each input of an accepted request."""
    return _told([(one.port.name, one.tensor) for one in given[: _MOST + 1]])


def tell_asked(request: InferRequest | MetadataRequest | None, model: Model) -> str:
    """The name, type and shape of each input of a refused inference; for other requests, their kind.

    Args:
        request: The parsed request; None: it could not be parsed.
        model: The model, whose names are also used for inputs by position; an unknown name is written as the peer sent
            it, in quotes unless it is one word.
    """
    if request is None:
        return "nothing"
    if isinstance(request, MetadataRequest):
        return "metadata"
    tensors = request.tensors[: _MOST + 1]
    names = (*request.input_names, *[""] * len(tensors))
    return _told([(_name(model, at, names[at]), one) for at, one in enumerate(tensors)])


def _name(model: Model, position: int, said: str) -> str:
    index = model.input_index(said) if said else position
    if index is not None and index < len(model.inputs):
        return model.inputs[index].name
    shown = said[:_NAME_SIGNS]
    return shown if shown.isascii() and shown.isidentifier() else ascii(shown) if shown else ""


def _told(several: Sequence[tuple[str, Tensor]]) -> str:
    shown = (f"{name}:{spelled(one.type)}{list(one.shape)}" for name, one in several[:_MOST])
    return " ".join(("infer", *shown, *(["..."] if len(several) > _MOST else [])))
