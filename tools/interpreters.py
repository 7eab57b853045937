"""Finds Python interpreters of a version, on PATH or in the folders of pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

_LIMIT_S = 20


def found(version: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the path of an interpreter of a version such as ``3.13`` that runs and can make environments, or None.

    The interpreter on PATH is tried first; it may be a shim of pyenv that does not run. Then the newest one in pyenv's
    folders is tried.
    """
    return next((path for path in _candidates(version, environ) if _is(path, version)), None)


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    if path := shutil.which(f"python{version}", path=environ.get("PATH", "")):
        yield path
    for root in filter(None, (environ.get("PYENV_ROOT"), f"{environ.get('HOME', '')}/.pyenv", "/opt/pyenv")):
        for folder in sorted(Path(root, "versions").glob(f"{version}.*"), key=_patch, reverse=True):
            yield str(folder / "bin" / "python")


def _patch(folder: Path) -> int:
    last = folder.name.rpartition(".")[2]
    return int(last) if last.isdecimal() else -1


def _is(path: str, version: str) -> bool:
    code = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and said.stdout.strip() == version
