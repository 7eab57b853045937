"""The ready line: printed at every log level, with a call to copy that fits the function."""

from __future__ import annotations

import json
import logging
import math
import shlex
import typing
from collections.abc import Mapping
from typing import Any

from invoker.codecs.typed import BYTES_LIKE, is_any, is_structured, leaves, members
from invoker.shape import IGNORED, FunctionSpec
from invoker.spelling import is_array

__all__ = ["announce", "sample_arguments"]

log = logging.getLogger(__name__)

_ARRAYS = (list, tuple, set, frozenset)
_TEXTS = ("NDArray[object_]", "NDArray[str_]", "NDArray[bytes_]")
_MOST_ELEMENTS = 12


def announce(line: str) -> None:
    """Log a line at INFO even when the level is higher: whoever started the process waits for it (R-016)."""
    log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, "%s", (line,), None))


def sample_arguments(spec: FunctionSpec) -> str:
    """Arguments of ``invoker call`` with a value for each input, as a shell takes them (R-005)."""
    samples = [_sample(one.type) for one in spec.inputs]
    is_json = any(text[0] in "[{" for text in samples)
    words = ["--json"] if is_json else [] if samples else ["--no-input"]
    for index, text in enumerate(samples):
        value = '"hello"' if is_json and text == "hello" else text
        words += ["--data", value] if index == 0 else ["--arg", f"{index}={value}"]
    if len(spec.outputs) != 1 and not spec.open_outputs:
        words += ["--outputs", ",".join(one.name for one in spec.outputs)]
    return shlex.join(words)


def _sample(type_: Any) -> str:
    """A value of this type, as text or JSON; of a class with fields only the braces."""
    if is_array(type_):
        return _array(type_)
    kinds = [one if isinstance(one, type) else typing.get_origin(one) for one in members(type_)]
    classes = [one for one in kinds if isinstance(one, type)]
    if type_ is IGNORED or is_any(type_) or not classes:
        return "7"
    if any(issubclass(one, (str, *BYTES_LIKE)) for one in classes):
        return "hello"
    for one in classes:
        if one is bool:
            return "true"
        if issubclass(one, (int, float)):
            return "7"
        if is_structured(one) or issubclass(one, Mapping):
            return "{}"
        if issubclass(one, _ARRAYS):
            return "[]"
    return "hello"


def _array(type_: Any) -> str:
    """A small array as nested lists: one element where any size is taken; without any where it would be long."""
    from invoker.tensors import array_spelled, numeric, shape_of

    one = next((one for one in leaves(type_) if array_spelled(one)), type_)
    declared = shape_of(one, "")
    sizes = [max(size, 1) if size else 0 for size in numeric(declared)] if declared is not None else [1]
    value: Any = "hello" if array_spelled(one) in _TEXTS else 0
    if math.prod(sizes) > _MOST_ELEMENTS:
        sizes = [0]
    for size in reversed(sizes):
        value = [value] * size
    return json.dumps(value)
