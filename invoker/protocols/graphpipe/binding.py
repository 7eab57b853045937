"""Binds the tensors of a request to inputs, and resolves the requested outputs (docs/reference/graphpipe.md 2.4).

Everything is checked before the function is called; `fitting` also checks the outputs of the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from invoker.protocols.graphpipe.model import Model, ModelPort
from invoker.protocols.graphpipe.plain import JSON, MSGPACK, listed_bytes
from invoker.tensors import (
    ITEM_BYTES,
    MAX_ERRORS,
    Code,
    GraphPipeError,
    InferRequest,
    Tensor,
    count_of,
    misfit,
    spelled,
    too_large,
)

_CODES: Final = {
    "missing_arg": Code.MISSING_INPUT,
    "unknown_arg": Code.UNKNOWN_INPUT,
    "duplicate_arg": Code.DUPLICATE_NAME,
    "too_many_args": Code.UNKNOWN_INPUT,
}
"""The error codes for faults of the binder (G-054, G-055)."""

_HELD_PER_LIMIT: Final = 4
_LISTED: Final = 32
"""How many existing names an error lists."""

_SHOWN: Final = 100
"""How many characters of a wrong name are shown; longer names are not compared with existing ones, since that would
take long."""


class GivenInput(msgspec.Struct, frozen=True):
    """An input of the model, and the tensor of the request for it."""

    port: ModelPort
    tensor: Tensor

    @property
    def cast_bytes(self) -> int:
        """The size of the numbers in bytes after a cast to the declared type (G-061); 0 if no cast is needed."""
        port, tensor = self.port, self.tensor
        return count_of(tensor.shape) * ITEM_BYTES[port.type] if tensor.type in port.castable else 0


def given_inputs(model: Model, request: InferRequest, known: dict[str, int]) -> tuple[GivenInput, ...]:
    """Bind the tensors of a request to inputs; returns them in declared order (G-070).

    Args:
        model: The model of the inputs.
        request: The parsed request.
        known: The values of named sizes; those of the inputs are added.

    Raises:
        GraphPipeError: An input is unknown (E4), given twice (E6), missing (E7), of another type (E8) or shape (E9).
            There is one error for each wrong input; the first error contains the others (G-084).
    """
    names, tensors = request.input_names, request.tensors
    if any(names):
        found = model.binder.named([model.input_name(name, place, len(names)) for place, name in enumerate(names)])
    else:
        found = model.binder.call(len(tensors))
    # If a name is unknown, it may be meant for the missing input, which is then not reported.
    faults = [one for one in found.faults if one.code != "missing_arg"] or found.faults
    wrong = [GraphPipeError(_CODES[one.code], str(one)) for one in faults[:MAX_ERRORS]]
    taken = [(place, found.parameters[place]) for place in model.binder.order(found.names)]
    given = tuple(GivenInput(model.port(found.names[place], one), tensors[place]) for place, one in taken if one)
    for one in given:
        if len(wrong) >= MAX_ERRORS:
            break
        try:
            _check(one, known)
        except GraphPipeError as error:
            wrong.append(error.bare)
    if wrong:
        raise GraphPipeError(wrong[0].code, wrong[0].detail, further=wrong[1:])
    return given


def wanted_outputs(model: Model, request: InferRequest) -> tuple[int, ...]:
    """The indexes of the requested outputs, in the order of the request; a name may repeat (G-057, G-058).

    Raises:
        GraphPipeError: A name is not the name of an output (E5).
    """
    if not request.output_names:
        return tuple(range(len(model.outputs)))
    wanted = []
    for name in request.output_names:
        index = model.output_index(name)
        if index is None:
            raise GraphPipeError(Code.UNKNOWN_OUTPUT, f"there is no output {name[:_SHOWN]!a}; {_there(model.outputs)}")
        wanted.append(index)
    return tuple(wanted)


def admit(given: Sequence[GivenInput], limit_bytes: int) -> None:
    """Refuse inputs that are too large in total, before they are converted (G-025).

    Raises:
        GraphPipeError: The inputs are too large (E13); tensors that share their data are counted each time.
    """
    total = sum(max(one.tensor.size, one.cast_bytes) for one in given)
    if total > limit_bytes:
        raise too_large("the inputs have", total, limit_bytes)
    listed = sum(listed_bytes(one.tensor) for one in given if one.port.media_type in (JSON, MSGPACK))
    if listed > _HELD_PER_LIMIT * limit_bytes:
        detail = (
            f"the inputs need {listed} bytes as lists, which exceeds the limit of {_HELD_PER_LIMIT * limit_bytes} bytes"
        )
        raise GraphPipeError(Code.TOO_LARGE, detail)


def fitting(
    port: ModelPort,
    tensor: Tensor,
    where: str,
    known: dict[str, int],
    *,
    codes: tuple[Code, Code] = (Code.TYPE_MISMATCH, Code.SHAPE),
) -> None:
    """Check that a tensor has the declared type and shape.

    Args:
        port: The input or output to which it belongs.
        tensor: The tensor.
        where: The name of the tensor, for error texts.
        known: The values of named sizes; those of this tensor are added.
        codes: The error codes for a wrong type and for a wrong shape.

    Raises:
        GraphPipeError: The tensor has another type or shape.
    """
    if port.types is not None and tensor.type not in port.types:
        raise GraphPipeError(codes[0], f"{where} {_mismatch(port, tensor, is_input=codes[0] is Code.TYPE_MISMATCH)}")
    if port.shape is not None and (problem := misfit(tensor.shape, port.shape, known)):
        raise GraphPipeError(codes[1], f"{where}: {problem}")  # G-062


def _mismatch(port: ModelPort, tensor: Tensor, *, is_input: bool) -> str:
    """Describe how the type of a tensor differs from the declared one, with a hint about casts (G-061)."""
    kinds = [port.type] if port.type else sorted(port.types or ())
    wanted = " or ".join(spelled(one) for one in kinds) or "a type that no tensor has"
    text = f"is {spelled(tensor.type)}, and {wanted} is declared"
    if tensor.type not in port.castable:
        return text
    if not is_input:
        kind = spelled(port.type).lower()
        return f"{text}; return array.astype('{kind}'), or use the option graphpipe.Casting(outputs='same_kind')"
    return f"{text}; nothing is cast, unless the function has the option graphpipe.Casting(inputs='same_kind')"


def _check(given: GivenInput, known: dict[str, int]) -> None:
    where = f"input '{given.port.name}'"
    if not given.port.media_type:
        raise GraphPipeError(Code.TYPE_MISMATCH, f"{where} cannot be given as a tensor")
    fitting(given.port, given.tensor, where, known)


def _there(ports: Sequence[ModelPort]) -> str:
    shown = ", ".join([*(one.name for one in ports[:_LISTED]), *(["..."] if len(ports) > _LISTED else [])])
    return f"there are {shown}" if ports else "there are none"
