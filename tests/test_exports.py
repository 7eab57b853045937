"""Public names go through a package's `__init__` and its `__all__`; this list is what users may rely on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOTS = (ROOT, ROOT / "conformance")

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
    "asgi",
    "codec",
    "function",
    "rule",
    "serve",
    "tee",
}


def packages() -> list[str]:
    """Every package of both distributions except generated code."""
    modules = [path.relative_to(root) for root in ROOTS for path in root.glob("invoker*/**/*.py")]
    folders = {folder for module in modules for folder in module.parents if folder.parts and "_pb" not in folder.parts}
    return sorted(".".join(folder.parts) for folder in folders)


@pytest.mark.parametrize("name", packages())
def test_a_package_says_what_it_exports(name: str) -> None:
    """Each package has an `__init__` with a docstring and a sorted `__all__` whose names exist."""
    file = Path(*name.split(".")) / "__init__.py"
    assert any((root / file).is_file() for root in ROOTS), f"{name} has no __init__.py"
    package = importlib.import_module(name)
    assert package.__doc__
    listed = list(package.__all__)
    assert len(set(listed)) == len(listed)
    assert listed == sorted(listed, key=_order)
    assert [one for one in listed if not hasattr(package, one)] == []


def test_the_top_level_is_what_authors_were_promised() -> None:
    """`from invoker import ...` offers these names and no others."""
    assert set(importlib.import_module("invoker").__all__) == TOP


def test_the_top_level_is_light() -> None:
    """What a server needs is imported once somebody serves; an unknown name is unknown."""
    code = (
        "import sys, invoker; assert 'serve' in dir(invoker); print(sorted(one for one in sys.modules if "
        "one.startswith(('invoker.server', 'invoker.transports', 'grpc', 'h2')))); print(invoker.serve)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[]\n<function serve")
    with pytest.raises(AttributeError, match="has no attribute 'serfe'"):
        importlib.import_module("invoker").serfe  # noqa: B018 - it is asked for


def _order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, as ruff sorts them."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name
