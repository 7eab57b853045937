"""`load`: imports the author's function from ``pkg.mod:attr``, ``file.py:attr``, ``file.pkl`` or ``pkg.mod``.

Every failure is a `LoadError` of one sentence: what is wrong, where, and what to do. An exception of the author's
module is never masked as "module not found"; its traceback stays chained as the cause, for ``--debug``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import linecache
import logging
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final

from invoker.author.decorator import options_of
from invoker.author.loadfail import (
    explain_import,
    explain_missing_attribute,
    explain_missing_file,
    explain_missing_module,
    explain_slow,
    where_of,
)
from invoker.author.shadows import shadowed
from invoker.errors import LoadError, StartupError
from invoker.errors.wording import describe, normalised

log = logging.getLogger(__name__)

_SLOW_S: Final = 3.0
"""Seconds after which the log shows the line of a module at which an import waits."""

_YOUNG_S: Final = 2.0
"""The seconds within which a source may change unnoticed: Python matches a compiled file to its source by the source's
size and its time in whole seconds."""

_PICKLES: Final = (".pkl", ".pickle")


@dataclass(frozen=True)
class Catalogue:
    """The decorated functions of a module; the result of `load` for ``pkg.mod`` without an attribute.

    Attributes:
        module: The module as it was named.
        functions: The functions by the name of the module's attribute, in the order of their definition.
    """

    module: str
    functions: dict[str, Any]


def load(entrypoint: str, *, allow_pickle: bool = False, fresh: bool = False) -> Any:
    """Import the object that an entrypoint names; the current directory (for a file: its directory) is put on the path.

    Args:
        entrypoint: ``pkg.mod:attr`` (dotted attributes too), ``file.py:attr``, ``file.pkl``, or a module alone.
        allow_pickle: Whether a pickle may be loaded; unpickling runs the code in the file.
        fresh: Whether to execute the module again, from its source, into a new module object (R-010).

    Returns:
        The function, or a `Catalogue` when a module alone was named and it has decorated functions.

    Raises:
        LoadError: The object does not exist, or importing it failed (R-008).
        StartupError: Raised by the author's module itself, for instance by a wrong use of a decorator.
    """
    entrypoint = entrypoint.strip()
    if entrypoint.lower().endswith(_PICKLES):
        return _load_pickle(entrypoint, allow_pickle=allow_pickle)
    source, attribute = _split(entrypoint)
    module = _import_file(source, fresh=fresh) if _is_file(source) else _import_module(source, fresh=fresh)
    if not attribute:
        return only_function(source, module)
    return _checked(entrypoint, _find(source, module, attribute))


def only_function(source: str, module: types.ModuleType) -> Any:
    """The catalogue of a module, or the only function that the module defines.

    Args:
        source: The name of the module as it was given.
        module: The imported module.

    Raises:
        LoadError: The module has no function, or several of which none is decorated.
    """
    members = vars(module)
    decorated = {name: value for name, value in members.items() if options_of(value) is not None}
    decorated = dict(_without_aliases(decorated))
    if decorated:
        return Catalogue(source, decorated)
    for is_candidate in (inspect.isfunction, _is_callable_class):
        public = [name for name, value in members.items() if _is_public(name, value, module, is_candidate)]
        if len(public) == 1:
            return members[public[0]]
        if public:
            raise LoadError(
                f"'{source}' has {len(public)} functions ({', '.join(public)}) where one is needed; name one as "
                f"'{source}:{public[0]}', or decorate those to be served with @function"
            )
    raise LoadError(f"'{source}' defines no public function; name one as '{source}:function'")


def module_of(entrypoint: str) -> str:
    """The name of the module that an entrypoint names; empty if it names none, as a pickle does."""
    source = entrypoint.strip()
    if not source or source.lower().endswith(_PICKLES):
        return ""
    source = _split(source)[0]
    return _module_name(Path(source).absolute()) if _is_file(source) else source


def _split(entrypoint: str) -> tuple[str, str]:
    usage = "name a function as 'module:function' or 'file.py:function'"
    if not entrypoint:
        raise LoadError(f"no function was named; {usage}")
    source, colon, attribute = entrypoint.rpartition(":")
    if not colon or (len(source) == 1 and attribute[:1] in "\\/"):  # C:\file.py is a path
        source, attribute = entrypoint, ""
    if not source or (colon and source != entrypoint and not attribute):
        raise LoadError(f"'{entrypoint}' names no {'module' if not source else 'function'}; {usage}")
    if not _is_file(source) and not all(part.isidentifier() for part in source.split(".")):
        hint = f"did you mean '{source.replace('/', '.').replace('-', '_')}'?" if "-" in source else usage
        raise LoadError(f"'{source}' is not the name of a module; {hint}")
    if attribute and not all(part.isidentifier() for part in attribute.split(".")):
        raise LoadError(f"'{attribute}' is not the name of a function; {usage}")
    return source, attribute


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source or os.sep in source


def _put_on_path(folder: str) -> None:
    if why := shadowed(folder):
        raise LoadError(why)
    if folder not in sys.path and not (folder == str(Path.cwd()) and "" in sys.path):
        sys.path.insert(0, folder)


def _import_module(name: str, *, fresh: bool) -> types.ModuleType:
    _put_on_path(str(Path.cwd()))
    importlib.invalidate_caches()
    with _explained(name):
        if fresh and name in sys.modules:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return _execute(spec)
        if name not in sys.modules:
            _forget_compiled(importlib.util.find_spec(name))
        return importlib.import_module(name)


def _import_file(source: str, *, fresh: bool) -> types.ModuleType:
    path = Path(source).absolute()
    if not path.is_file():
        raise LoadError(explain_missing_file(source, path))
    _put_on_path(str(path.parent))
    importlib.invalidate_caches()
    name = _module_name(path)
    known = sys.modules.get(name)
    if known is not None and not fresh:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"'{source}' is not a Python file; name one that ends with .py")
    with _explained(name):
        return _execute(spec)


def _module_name(path: Path) -> str:
    """The name of a module that is loaded from a file: the stem of the file, unless another module has that name."""
    name = path.stem if path.stem.isidentifier() else "function"
    known = sys.modules.get(name)
    taken = known is not None and getattr(known, "__file__", None) != str(path)
    return f"_invoked_{name}" if taken or name in sys.stdlib_module_names else name


def _forget_compiled(spec: ModuleSpec | None) -> None:
    """Remove the compiled file of a source that was edited just now, since it may be from the previous version."""
    if spec is None or not spec.has_location or not spec.origin or not spec.cached:
        return
    with contextlib.suppress(OSError):  # the file does not exist, or the folder is not writable
        if time.time() - Path(spec.origin).stat().st_mtime < _YOUNG_S:
            Path(spec.cached).unlink()


def _execute(spec: ModuleSpec) -> types.ModuleType:
    """Execute a module from its source, since a compiled file may be older than an edit within the same second."""
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(spec.name)
    sys.modules[spec.name] = module  # dataclasses and type hints look up their module in it
    try:
        loader: Any = spec.loader
        if hasattr(loader, "source_to_code") and spec.origin:
            linecache.checkcache(spec.origin)
            code = loader.source_to_code(loader.get_data(spec.origin), spec.origin)
            exec(code, module.__dict__)  # noqa: S102 - an import executes the module
        else:
            loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[spec.name]
        else:
            sys.modules[spec.name] = before
        raise
    module = sys.modules.get(spec.name, module)  # a module may replace itself
    parent, _, child = spec.name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return module


class _explained:  # noqa: N801 - used as a statement
    """Turns an exception of an import into one sentence, and warns when the import takes long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._timer = threading.Timer(_SLOW_S, self._warn, (threading.get_ident(),))
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._timer.cancel()
        if error is None or not isinstance(error, Exception | SystemExit):
            return
        if isinstance(error, ModuleNotFoundError) and _is_prefix(error.name or "", self._name):
            raise LoadError(explain_missing_module(self._name, error.name or "")) from None
        sentence = explain_import(self._name, error)
        if sentence is None:
            return
        if not isinstance(error, StartupError):
            raise LoadError(sentence) from error
        error.detail, error.args = sentence, (sentence,)  # the error's text becomes the sentence; its class stays

    def _warn(self, thread: int) -> None:
        log.warning("%s", explain_slow(self._name, thread, _SLOW_S))


def _is_prefix(missing: str, name: str) -> bool:
    return name == missing or name.startswith(f"{missing}.")


def _find(source: str, module: types.ModuleType, attribute: str) -> Any:
    found: Any = module
    path = source
    for part in attribute.split("."):
        parent = found
        try:
            found = getattr(parent, part if hasattr(parent, part) else normalised(part))
        except AttributeError:
            raise LoadError(explain_missing_attribute(path, parent, part)) from None
        path = f"{path}:{part}" if path == source else f"{path}.{part}"
        if isinstance(parent, type) and inspect.isfunction(inspect.getattr_static(parent, part, None)):
            raise LoadError(
                f"'{path}' is a method of a class and needs an instance; make one in the module "
                f"(it = {parent.__name__}()) and name '{source}:it.{part}'"
            )
    return found


def _checked(entrypoint: str, found: Any) -> Any:
    if callable(found):
        return found
    kind = type(found).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    if isinstance(found, types.ModuleType):
        fix = f"name one of its functions: '{found.__name__}:function'"
    elif inspect.iscoroutine(found) or inspect.isgenerator(found) or inspect.isasyncgen(found):
        fix = "name the function itself, without calling it"
        if inspect.iscoroutine(found):
            found.close()  # otherwise Python warns that the coroutine was never awaited
    else:
        fix = "name a function, a class with __call__, or an instance of one"
    raise LoadError(f"'{entrypoint}' is {article} {kind}, which cannot be called; {fix}")


def _without_aliases(members: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for name, value in members.items():
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _is_callable_class(value: Any) -> bool:
    return isinstance(value, type) and any("__call__" in vars(base) for base in value.__mro__)


def _is_public(name: str, value: Any, module: types.ModuleType, is_candidate: Callable[[Any], bool]) -> bool:
    return not name.startswith("_") and is_candidate(value) and value.__module__ == module.__name__


def _load_pickle(source: str, *, allow_pickle: bool) -> Any:
    path = Path(source)
    if not path.is_file():
        raise LoadError(explain_missing_file(source, path.absolute()))
    if not allow_pickle:
        raise LoadError(
            f"'{source}' is a pickle, and loading a pickle runs whatever code it holds with all your rights; "
            "pass --allow-pickle only if you trust its author"
        )
    _put_on_path(str(Path.cwd()))
    try:
        import cloudpickle  # only for pickles: it costs 20 ms

        with path.open("rb") as file:
            found = cloudpickle.load(file)
    except Exception as error:  # unpickling runs code of the file
        if isinstance(error, ModuleNotFoundError):
            text = f"'{source}' needs the module '{error.name}', which is not installed here; install it"
        else:
            text = f"'{source}' cannot be unpickled: {describe(error)}{where_of(error)}; pickle it again here"
        raise LoadError(text) from error
    return _checked(source, found)
