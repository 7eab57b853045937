"""``python -m tools.smoke [GONE]``: a smoke test of the tree in the current folder, for `tools.deletable`.

GONE is a deleted protocol. It prints a line for each fault; if there is one, the exit code is 1.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path

_LIMIT_S = 60.0
_FUNCTION = "functions.square:square"


def main(arguments: list[str]) -> int:
    """Run all checks, and return the exit code."""
    warnings.simplefilter("ignore", DeprecationWarning)
    gone = arguments[0] if arguments else ""
    found: list[str] = []
    for check in (_imported, _named, _said, _served):
        try:
            found += check(gone)
        except Exception as error:  # noqa: BLE001 - every exception is reported
            found.append(f"{check.__name__.strip('_')}: {type(error).__name__}: {error}")
    print("\n".join(found))
    return int(bool(found))


def _imported(_: str) -> Iterator[str]:
    """Check that every module can be imported, unless it needs a library that is not installed."""
    import invoker

    assert Path(invoker.__file__).parent.parent == Path.cwd(), f"this is the tree of {invoker.__file__}"
    broken: list[str] = []
    for one in pkgutil.walk_packages(invoker.__path__, "invoker.", onerror=broken.append):
        if one.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(one.name)
        except ModuleNotFoundError as error:
            if (error.name or "invoker").startswith("invoker"):
                yield f"{one.name} cannot be imported: {error}"
    yield from (f"{name} cannot be imported" for name in broken)


def _named(gone: str) -> Iterator[str]:
    """Check that the public names of clients exist, except those of the deleted protocol."""
    for package in ("invoker", "invoker.client"):
        module = importlib.import_module(package)
        for name in module.__all__:
            try:
                getattr(module, name)
            except ModuleNotFoundError as error:
                if not gone or not (error.name or "").startswith(f"invoker.protocols.{gone}"):
                    yield f"{package}.{name} is not there: {error}"


def _said(_: str) -> Iterator[str]:
    """Check the help of the command line, and `inspect` of a function."""
    for arguments in (("--help",), ("call", "--help"), ("completion", "bash"), ("inspect", _FUNCTION)):
        command = (sys.executable, "-m", "invoker", *arguments)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        if ended.returncode:
            yield f"{' '.join(command[1:])} ends with {ended.returncode}: {ended.stderr[-1000:]}"


def _served(_: str) -> Iterator[str]:
    """Check that a function is served on both ports, with all protocols, and returns its results."""
    from invoker.client import SyncRiffClient
    from tools.server import serving

    with serving(_FUNCTION) as server:
        request = urllib.request.Request(f"http://{server.http}/", b"7", {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
            if (got := answer.read()) != b"49":
                yield f"over HTTP square(7) is {got!r}"
        with SyncRiffClient(server.grpc) as client:
            if (result := client.invoke([[7]]).value()) != 49:
                yield f"over gRPC square(7) is {result!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
