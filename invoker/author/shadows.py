"""Finds modules of an author that have the name of a package that the invoker needs.

The author's folder stands in front of all packages, so such a module would be imported in the package's place; perhaps
only when the first HTTP/2 connection arrives, which then waits for ever. So it is refused at the start.

This module imports only modules that cannot be shadowed themselves.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

FIRST: Final = ("msgspec", "typing_extensions")
"""Packages that the invoker imports before its own modules."""

NAMES: Final = (
    *FIRST,
    *("annotated_types", "anyio", "backports", "cffi", "cloudpickle", "cryptography", "dspy", "google", "grpc"),
    *("grpc_health", "grpc_reflection", "h2", "hpack", "hyperframe", "idna", "numpy"),
    *("onnxruntime", "pandas", "prometheus_client", "pyarrow", "pydantic", "pydantic_core"),
    *("python_multipart", "redis", "sniffio", "typing_inspection", "uvloop", "watchfiles"),
)
"""Packages that the invoker imports, directly or through other packages."""


@functools.cache
def shadowed(folder: str, names: Iterable[str] = NAMES) -> str:
    """A sentence about the first module in a folder that hides a package; empty if there is none.

    Packages that are installed into this folder itself are not shadowed, since they exist nowhere else.
    """
    others = [one for one in sys.path if one not in ("", folder)]
    for name in names:
        for path in (Path(folder, f"{name}.py"), Path(folder, name, "__init__.py")):
            if path.is_file() and PathFinder.find_spec(name, others) is not None:
                return f"{path} has the name of the package '{name}', which the invoker needs itself; rename it"
    return ""
