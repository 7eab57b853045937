"""Public names go through a package's `__init__` and its `__all__`; this list is what users may rely on."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

TOP = {
    "Checkpoint",
    "Codec",
    "Context",
    "Field",
    "Headers",
    "InputCancelled",
    "Message",
    "Metadata",
    "NestedError",
    "Output",
    "Status",
    "Ref",
    "StatusError",
    "StopInvocation",
    "Tensor",
    "ToolError",
    "Update",
    "VariableError",
    "codec",
    "function",
    "rule",
    "tee",
}


def packages() -> list[str]:
    """Every package of the product except generated code."""
    modules = (path.relative_to(ROOT) for path in (ROOT / "invoker").rglob("*.py"))
    folders = {folder for module in modules for folder in module.parents if folder.parts and "_pb" not in folder.parts}
    return sorted(".".join(folder.parts) for folder in folders)


@pytest.mark.parametrize("name", packages())
def test_a_package_says_what_it_exports(name: str) -> None:
    """Each package has an `__init__` with a docstring and a sorted `__all__` whose names exist."""
    assert (ROOT / Path(*name.split(".")) / "__init__.py").is_file(), f"{name} has no __init__.py"
    package = importlib.import_module(name)
    assert package.__doc__
    listed = list(package.__all__)
    assert len(set(listed)) == len(listed)
    assert listed == sorted(listed, key=_order)
    assert [one for one in listed if not hasattr(package, one)] == []


def test_the_top_level_is_what_authors_were_promised() -> None:
    """`from invoker import ...` offers these names and no others."""
    assert set(importlib.import_module("invoker").__all__) == TOP


def _order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, as ruff sorts them."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name
