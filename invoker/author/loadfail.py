"""Makes the sentence that explains why an entrypoint could not be loaded, and what to do about it.

Only texts are made here; `invoker.author.loader` decides what happened and raises.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import os
import pkgutil
import sys
import sysconfig
import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from invoker.errors import StartupError
from invoker.errors.wording import describe, nearest


def explain_missing_module(name: str, missing: str) -> str:
    """Explain that the module, or a package that contains it, does not exist."""
    parent, _, child = missing.rpartition(".")
    text = f"there is no module '{missing}'" + (f", which '{name}' names" if missing != name else "")
    if parent in sys.modules and not hasattr(sys.modules[parent], "__path__"):
        if hasattr(sys.modules[parent], child):
            return f"{text}; did you mean '{parent}:{child}'?"
        return f"{text}: '{parent}' is a module and not a package; name a function of it as '{parent}:function'"
    if near := nearest(child, _modules_in(parent)):
        return f"{text}; did you mean '{f'{parent}.' if parent else ''}{near}{name[len(missing) :]}'?"
    if parent:
        return f"{text}; '{parent}' has {', '.join(sorted(_modules_in(parent))[:10]) or 'no modules'}"
    text = f"there is no module '{missing}'" + (f" for '{name}'" if missing != name else "")
    return f"{text} in {Path.cwd()} or among the installed packages; run from the directory that holds {child}.py"


def explain_missing_file(source: str, path: Path) -> str:
    """A sentence about a file that does not exist, with the name of a file that is spelt alike."""
    if path.is_dir():
        return f"'{source}' is a directory; name a file in it, like '{source.rstrip('/')}/file.py:function'"
    if not path.parent.is_dir():
        return f"there is no file '{source}', nor its directory {path.parent}; check the path"
    names = [one.name for one in path.parent.iterdir() if one.suffix in {path.suffix, ".py"}]
    near = nearest(path.name, names)
    hint = f"did you mean '{Path(source).parent / near}'?" if near else "check the path"
    return f"there is no file '{source}' in {Path.cwd()}; {hint}"


def explain_missing_attribute(path: str, parent: Any, name: str) -> str:
    """Explain that the module, class or object has no such attribute."""
    public = [one for one in dir(parent) if not one.startswith("_")]
    functions = [one for one in public if _is_function(parent, one)]
    home = getattr(parent, "__name__", None) if inspect.ismodule(parent) else None
    if home is not None:  # an author seldom means a function that the module only imports
        functions = [one for one in functions if getattr(getattr(parent, one), "__module__", home) == home]
    if near := nearest(name, functions) or nearest(name, public):
        return f"'{path}' has no '{name}'; did you mean '{near}'?"
    more = f" and {len(functions) - 10} more" if len(functions) > 10 else ""
    return f"'{path}' has no '{name}'; its functions are {', '.join(functions[:10]) or 'none'}{more}"


def explain_import(name: str, error: BaseException) -> str | None:
    """Explain what importing the module raised; None if there is nothing to add to the error's own text."""
    if isinstance(error, StartupError):
        return _explain_own(error)
    if isinstance(error, SyntaxError) and "null bytes" in str(error.msg):
        return f"'{name}' is not in UTF-8 (an editor may have saved it as UTF-16); save the file as UTF-8"
    if isinstance(error, SyntaxError):
        place = f"{_short(error.filename or '?')}:{error.lineno or '?'}"
        line = f" in {error.text.strip()!r}" if error.text and error.text.strip() else ""
        return f"'{name}' has a syntax error at {place}: {error.msg}{line}; correct that line"
    where = where_of(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"'{name}' needs '{error.name}', which is not installed{where}; {_how_to_get(error.name)}"
    if isinstance(error, SystemExit):
        return (
            f"'{name}' called sys.exit({error.code!r}) when it was imported{where}; move what the script does "
            "under `if __name__ == '__main__':`"
        )
    if half_made := _half_made(error):
        return (
            f"'{name}' cannot be imported: '{half_made}' is used{where} before its own import has ended, which is a "
            "circular import; move one of the two imports into the function that needs it, "
            "or what both need into a third module"
        )
    if isinstance(error, ImportError) and "attempted relative import" in str(error):
        return _explain_relative(name, error, where)
    if isinstance(error, ImportError) and error.name and "cannot import name" in str(error):
        return f"'{name}' cannot be imported: {str(error).split(' (')[0]}{where}; correct that name"
    named = f", in '{near}'," if (near := _named_at(error)) else ""
    return f"'{name}' raised {describe(error)}{where}{named} when it was imported; correct it"


def _half_made(error: BaseException) -> str | None:
    """The module that lacks a name because it is still being imported.

    The text of this error differs between versions of Python.
    """
    if isinstance(error, AttributeError):
        module = getattr(error.obj, "__name__", None) if inspect.ismodule(error.obj) else None
    else:
        module = error.name if isinstance(error, ImportError) else None
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    begun = {frame.f_globals.get("__name__") for frame in frames if frame.f_code.co_name == "<module>"}
    return module if module in begun else None


def explain_slow(name: str, thread: int, seconds: float) -> str:
    """A sentence about a slow import, with the line in which its thread may hang."""
    frames = traceback.extract_stack(sys._current_frames().get(thread))  # noqa: SLF001 - there is no public way
    own = [one for one in frames if _is_authors(one.filename)]
    where = f", at {_short(own[-1].filename)}:{own[-1].lineno} (`{own[-1].line}`)" if own else ""
    return (
        f"'{name}' has been importing for {seconds:g} s{where}; if it starts a server or waits there, move that under "
        "`if __name__ == '__main__':`, since the function is served only once its module has been imported"
    )


def where_of(error: BaseException) -> str:
    """`` at file:line`` of the innermost line of the author's code; empty if there is none."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_authors(one.filename)]
    return f" at {_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _explain_relative(name: str, error: ImportError, where: str) -> str:
    """Explain that a relative import leads out of the named package."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_authors(one.filename)]
    above = Path(frames[-1].filename).absolute().parents[name.count(".")].name if frames else "folder"
    why = f"needs a package, and '{name}' was named as a module by itself"
    if "beyond top-level" in str(error):
        why = f"goes above '{name.partition('.')[0]}', the outermost package that is known"
    return (
        f"'{name}' cannot be imported: the relative import{where} {why}; leave its dots out, or run from the directory "
        f"above and name '{above}.{name}:function'"
    )


def _explain_own(error: StartupError) -> str | None:
    """Add to an error of the invoker the line that raised it, and the function or class that begins there, if any."""
    place = where_of(error)
    if not place or place in error.detail:
        return None
    name = _named_at(error)
    where = f"'{name}'{place}" if name else place.strip()
    return f"{error.detail} ({where})"


def _named_at(error: BaseException) -> str:
    """The function or class whose decorators, parameters or fields contain the raising line; empty if none."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_authors(one.filename)]
    try:
        tree = ast.parse("".join(linecache.getlines(frames[-1].filename)))
    except (IndexError, SyntaxError, ValueError):
        return ""
    line, found = frames[-1].lineno or 0, ""
    for node in ast.walk(tree):  # the outer ones come first
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            heads: list[ast.expr | ast.stmt | None] = [*node.decorator_list]
            if isinstance(node, ast.ClassDef):
                heads += [one for one in node.body if isinstance(one, ast.AnnAssign)]
            else:
                heads += [one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg)]
                heads += [*node.args.defaults, *node.args.kw_defaults, node.returns]
            if any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in heads if one is not None):
                found = node.name
    return found


def _modules_in(parent: str) -> list[str]:
    if not parent:
        found = {one.name for one in pkgutil.iter_modules([str(Path.cwd())])}
        # Packages without __init__.py are importable too.
        found |= {one.name for one in Path.cwd().iterdir() if one.is_dir() and one.name.isidentifier()}
        return sorted(found)
    try:
        return [one.name for one in pkgutil.iter_modules(importlib.import_module(parent).__path__)]
    except Exception:  # noqa: BLE001 - only a suggestion depends on it
        return []


def _is_function(parent: Any, name: str) -> bool:
    value = inspect.getattr_static(parent, name, None)
    return (callable(value) and not isinstance(value, type)) or isinstance(value, staticmethod | classmethod)


def _how_to_get(module: str) -> str:
    top = module.partition(".")[0]
    near = get_close_matches(top, [*_modules_in(""), *sys.stdlib_module_names], n=1, cutoff=0.75)
    if near and near[0] != top:
        return f"did you mean '{near[0]}'? Else install it: pip install {top}"
    return f"install it: pip install {top}"


def _is_authors(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = str(Path(filename).absolute())
    paths = sysconfig.get_paths()
    foreign = [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], str(Path(__file__).parents[1])]
    return not any(path.startswith(folder + os.sep) for folder in foreign)


def _short(filename: str) -> str:
    """The path relative to the current directory, if the file is below it."""
    try:
        relative = os.path.relpath(filename)
    except ValueError:
        return filename  # on another drive
    return filename if relative.startswith("..") else relative
