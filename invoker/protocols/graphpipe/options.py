"""The options of `@function` that only GraphPipe understands."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from invoker.author.protocoloptions import ProtocolOption
from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.codecs.annotations import is_array
from invoker.errors import SpecError
from invoker.fields.aliases import UNIONS

_RULES = ("no", "same_kind")


@dataclass(frozen=True, slots=True)
class Casting(ProtocolOption):
    """Casts arrays to the declared types, by numpy's casting rule of the given name (G-061).

    Attributes:
        inputs: ``"same_kind"``: arrays of clients are cast if every value fits. ``"no"``: other types are refused.
        outputs: The same for arrays that the function returns, over every protocol: ``"same_kind"`` casts the float64
            of a computation to the declared float32.

    Raises:
        SpecError: The rule is unknown.
    """

    protocol: ClassVar[str] = "graphpipe"
    inputs: str = "no"
    outputs: str = "no"

    def __post_init__(self) -> None:
        for field in ("inputs", "outputs"):
            value = getattr(self, field)
            if value not in _RULES:
                raise SpecError(f"graphpipe.Casting({field}={value!r}) is unknown; it can be 'no', 'same_kind'")

    def applied(self, spec: FunctionSpec) -> FunctionSpec:
        """Mark the arrays of the function that will be cast.

        Raises:
            SpecError: There are no arrays to cast.
        """
        if self.inputs != "no":
            own = tuple(one.stream for one in spec.call.parameters if one.stream is not None)
            self._check(spec, "inputs", (*spec.inputs, *spec.optional, *own))
            parameters = tuple(
                one if one.stream is None else replace(one, stream=self._cast((one.stream,), self.inputs)[0])
                for one in spec.call.parameters
            )
            spec = replace(
                spec,
                inputs=self._cast(spec.inputs, self.inputs),
                optional=self._cast(spec.optional, self.inputs),
                call=replace(spec.call, parameters=parameters),
            )
        if self.outputs != "no":
            self._check(spec, "outputs", (*spec.outputs, *spec.parts))
            spec = replace(
                spec,
                outputs=self._cast(spec.outputs, self.outputs),
                parts=self._cast(spec.parts, self.outputs),
            )
        return spec

    def _check(self, spec: FunctionSpec, field: str, streams: Iterable[StreamSpec]) -> None:
        if not any(is_array(one.type) for one in streams):
            raise SpecError(
                f"graphpipe.Casting({field}={getattr(self, field)!r}) of '{spec.name}' is for arrays, and no "
                f"{field[:-1]} is annotated as one; annotate NDArray[np.float32] or the like, or drop {field}="
            )

    @staticmethod
    def _cast(streams: tuple[StreamSpec, ...], rule: str) -> tuple[StreamSpec, ...]:
        from invoker import tensors

        casting = tensors.Casting(rule)

        def cast(type_: Any) -> Any:
            if typing.get_origin(type_) in UNIONS:
                return typing.Union[tuple(cast(one) for one in typing.get_args(type_))]  # noqa: UP007 - made at run time
            return Annotated[type_, casting] if is_array(type_) else type_

        return tuple(replace(one, type=cast(one.type)) for one in streams)


@dataclass(frozen=True, slots=True)
class Rows(ProtocolOption):
    """Feeds the function row by row: it gets each row of a tensor as a value, and its results are stacked again.

    Attributes:
        by_row: False: the function is fed whole tensors, as without this option.

    Raises:
        SpecError: The value is neither True nor False.
    """

    protocol: ClassVar[str] = "graphpipe"
    by_row: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.by_row, bool):
            raise SpecError(f"graphpipe.Rows(by_row={self.by_row!r}) must be True or False")

    def applied(self, spec: FunctionSpec) -> FunctionSpec:
        """Refuse the option if batches are joined.

        Raises:
            SpecError: The function also has ``batch_max``, which joins requests.
        """
        if self.by_row and spec.batching.rows > 1:
            raise SpecError(
                f"@function(batch_max=..., options=[graphpipe.Rows()]) of '{spec.name}': a function takes batches or "
                "rows; drop one of them"
            )
        return spec
