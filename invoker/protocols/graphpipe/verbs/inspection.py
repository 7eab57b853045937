"""Describes the tensors of functions with arrays for ``invoker inspect``."""

from __future__ import annotations

from typing import Any

from invoker.author.spec import WANTED, FunctionSpec
from invoker.codecs import wants_arrays


def described(spec: FunctionSpec) -> dict[str, Any]:
    """The model and how it is fed, as JSON data; None for a function without arrays."""
    return {"model": _model(spec)}


def rows(spec: FunctionSpec) -> list[tuple[str, str]]:
    """List the input and output tensors, one per line, and how they are fed to the function."""
    model = _model(spec)
    if model is None:
        return []
    joined, wait_ms = model["batch_max"], model["batch_wait_ms"]
    traits = [
        f"version {model['version']}" if model["version"] else "",
        "fed row by row" if model["rows"] else "",
        f"up to {joined} rows of requests are joined, {wait_ms:g} ms" if joined > 1 else "",
        "other types of the same kind are cast" if model["casting"] != "no" else "nothing is cast",
        "is given the names of wanted outputs" if any(slot.index == WANTED for slot in spec.call.slots) else "",
    ]
    rows = [("model", "; ".join(one for one in traits if one))]
    for way in ("inputs", "outputs"):
        rows += [(f"  {way[:-1]}", _tensor(one)) for one in model[way]]
    return rows


def _tensor(told: dict[str, Any]) -> str:
    kind = told["TypeName"] if told["Type"] else "any type"
    shape = f" {told['Shape']}" if told["Shape"] else ""
    return f"{told['Name']}: {kind}{shape}" + (f"  {told['Description']}" if told["Description"] else "")


def _model(spec: FunctionSpec) -> dict[str, Any] | None:
    """The model of a function and how it is fed; None for a function without arrays."""
    if not wants_arrays(spec.types):
        return None
    from invoker.protocols.graphpipe.model import Model
    from invoker.protocols.graphpipe.options import Casting
    from invoker.tensors import listing

    model = Model(spec, has_arrays=True)
    told, casting = listing(model.metadata), spec.options.get(Casting)
    return {
        "name": told["Name"],
        "version": told["Version"],
        "inputs": told["Inputs"],
        "outputs": told["Outputs"],
        "rows": model.by_row,
        "batch_max": spec.batching.rows,
        "batch_wait_ms": spec.batching.wait_ms,
        "casting": casting.inputs if casting else "no",
    }
