"""Workers share the rewriting of test files, which a fresh clone needs: alone each of them would rewrite all.

Rewriting the ``assert`` statements of a thousand files takes 17 s of the processor. Workers of pytest-xdist collect
the same files in the same order at the same time, so each would find no file that another one has rewritten already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import pytest


def collected(config: pytest.Config) -> list[Path]:
    """The files that are collected, unless a plugin leaves some out."""
    roots = [config.invocation_params.dir / one.split("::")[0] for one in config.args]
    return [file for root in roots for file in _files(root, config.getini("norecursedirs"))]


def _files(root: Path, ignored: Sequence[str]) -> Iterator[Path]:
    for one in sorted(root.rglob("test_*.py")) if root.is_dir() else (root,):
        if not any(fnmatch(part, pattern) for part in one.relative_to(root).parts for pattern in ignored):
            yield one


def rewrite_share(config: pytest.Config, files: Sequence[Path], number: int, count: int) -> None:
    """Rewrite those of a worker's files that have no fresh bytecode.

    Args:
        config: Holds the hook that rewrites.
        files: Of all workers.
        number: Of this worker, 0 <= number < count.
        count: How many workers there are.
    """
    for file in files[number::count]:
        if not _is_fresh(file):
            _rewrite(file, config)


def _is_fresh(file: Path) -> bool:
    kept = file.parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
    return kept.exists() and kept.stat().st_mtime >= file.stat().st_mtime


def _rewrite(file: Path, config: pytest.Config) -> None:
    """The hook rewrites a module as it loads it; this one cannot run, since even ``import`` is missing there."""
    hook: Any = config.pluginmanager.rewrite_hook
    if (spec := hook.find_spec(file.stem, [str(file.parent)])) is not None:
        module = module_from_spec(spec)
        vars(module)["__builtins__"] = {}
        with suppress(ImportError):
            spec.loader.exec_module(module)
