"""Reads the source of an author's function for mistakes that would only show while it runs.

Errors are certain: the code that they name cannot work. Warnings are habits that hurt, such as a blocking call on the
event loop. Names are looked up in the function's own module, so an alias of `time.sleep` is found and a local of that
name is not mistaken for it. Without source (a lambda in a shell, a builtin) there is nothing to check. Nested functions
are not read, since it is not known when they run.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from invoker.author.signature import called, layers
from invoker.author.spec import FunctionSpec, ResultShape, StreamSpec, Style

_BLOCKING: Final = {
    "time.sleep": "await asyncio.sleep(...)",
    "subprocess.run": "await asyncio.create_subprocess_exec(...)",
    "subprocess.call": "await asyncio.create_subprocess_exec(...)",
    "subprocess.check_call": "await asyncio.create_subprocess_exec(...)",
    "subprocess.check_output": "await asyncio.create_subprocess_exec(...)",
    "urllib.request.urlopen": "an async HTTP client, or await asyncio.to_thread(...)",
    "socket.create_connection": "await asyncio.open_connection(...)",
    "posix.system": "await asyncio.create_subprocess_shell(...)",
    "nt.system": "await asyncio.create_subprocess_shell(...)",
    "builtins.input": "await asyncio.to_thread(...)",
}
_BLOCKING_PACKAGES: Final = {"requests": "an async HTTP client, or await asyncio.to_thread(...)"}
_CONSUMERS: Final = (all, any, dict, enumerate, iter, list, max, min, next, set, sorted, sum, tuple, zip)
_DEAD_ENDS: Final = (
    *(ast.Expr, ast.Return, ast.Yield, ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue),
    *(ast.If, ast.While, ast.For, ast.Subscript),
)
"""Syntax nodes that cannot use a coroutine as a child expression."""

_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake in the source of a function.

    Attributes:
        is_error: Whether the function cannot work; otherwise the finding is a warning.
        text: One sentence with the fix.
        where: ``file:line``.
    """

    is_error: bool
    text: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def check(function: Any, spec: FunctionSpec) -> tuple[Finding, ...]:
    """Read the source of a function for mistakes.

    Args:
        function: The loaded function; the innermost function that it wraps is read.
        spec: The spec that was read from the signature.
    """
    inner = list(layers(function))[-1]
    tree = _parse(inner)
    if tree is None:
        return ()
    scan = _Scan(inner, spec, tree, is_called=called(function) is inner)
    return tuple(sorted(scan.findings(), key=lambda one: (not one.is_error, one.where)))


def _parse(inner: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        lines, first = inspect.getsourcelines(inner)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    ast.increment_lineno(tree, first - 1)
    return tree.body[0]


def _closure(function: Any) -> dict[str, Any]:
    """The variables that a function uses from the functions around it; empty if one of them has no value yet."""
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except ValueError:  # a cell is still empty (before Python 3.13)
        return {}


class _Scan:
    """Looks through the source of one function once."""

    def __init__(
        self, inner: Any, spec: FunctionSpec, tree: ast.FunctionDef | ast.AsyncFunctionDef, *, is_called: bool
    ) -> None:
        self._is_called = is_called  # otherwise a wrapper around the function takes the inputs and makes the outputs
        self._inner = inner
        self._spec = spec
        self._tree = tree
        self._nodes = list(_own_nodes(tree))
        self._parents = {child: node for node in [tree, *self._nodes] for child in ast.iter_child_nodes(node)}
        self._locals = _assigned(self._nodes)
        self._arguments = {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)}
        self._closure = _closure(inner)
        self._file = inspect.getsourcefile(inner) or "?"

    def findings(self) -> Iterator[Finding]:
        if isinstance(self._tree, ast.AsyncFunctionDef):
            for node in self._nodes:
                if isinstance(node, ast.Call):
                    yield from self._unawaited(node)
                    yield from self._blocking(node)
        if self._is_called and self._spec.is_async:
            yield from self._sync_loops()
        if self._is_called:
            yield from self._results()

    def _unawaited(self, call: ast.Call) -> Iterator[Finding]:
        callee = self._resolve(call.func)
        if not inspect.iscoroutinefunction(callee) or self._is_passed_on(call):
            return
        name = ast.unparse(call.func)
        yield self._finding(call, f"'{name}(...)' is never awaited, so it does not run; write `await {name}(...)`")

    def _is_passed_on(self, call: ast.Call) -> bool:
        """Whether the result of a call may be awaited: it is awaited, passed on, collected, or kept under a name."""
        parent = self._parents.get(call)
        if isinstance(parent, _DEAD_ENDS):
            return False
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            return self._is_used(parent.targets[0].id)
        return True

    def _is_used(self, name: str) -> bool:
        """Whether a name is awaited, or passed on to code that may await it; use in arithmetic does not count."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                parent = self._parents.get(node)
                if not isinstance(parent, _DEAD_ENDS):
                    return True
        return False

    def _blocking(self, call: ast.Call) -> Iterator[Finding]:
        callee = self._resolve(call.func)
        module = getattr(callee, "__module__", None) or ""
        instead = _BLOCKING.get(f"{module}.{getattr(callee, '__qualname__', '')}")
        instead = instead or _BLOCKING_PACKAGES.get(module.partition(".")[0])
        if instead is not None:
            name = ast.unparse(call.func)
            text = f"'{name}(...)' blocks the event loop and with it every other invocation; use {instead}"
            yield self._finding(call, text, is_error=False)

    def _sync_loops(self) -> Iterator[Finding]:
        streams = {one.name for one in self._parameters() if not one.single} - self._locals
        if self._spec.style is not Style.STREAMING:
            return
        is_async = isinstance(self._tree, ast.AsyncFunctionDef)
        for node in self._nodes:
            read = _iterated(node)
            if isinstance(read, ast.Name) and read.id in streams:
                text = f"'for ... in {read.id}' cannot read an async stream; write {self._async_for(read.id)}"
                yield self._finding(read, text)
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                name = node.args[0].id
                if name in streams and self._is_consumer(node.func):
                    text = f"'{ast.unparse(node.func)}({name})' cannot read an async stream; " + (
                        f"collect it first: [x async for x in {name}]" if is_async else f"write {self._async_for(name)}"
                    )
                    yield self._finding(node, text)

    def _async_for(self, name: str) -> str:
        """Describe how to read an async stream; a plain ``def`` has to become an ``async def`` first."""
        loop = f"`async for ... in {name}`"
        return loop if isinstance(self._tree, ast.AsyncFunctionDef) else f"`async def {self._tree.name}` and {loop}"

    def _is_consumer(self, callee: ast.expr) -> bool:
        resolved = self._resolve(callee)
        return any(resolved is one for one in _CONSUMERS)

    def _parameters(self) -> tuple[StreamSpec, ...]:
        """The inputs under the names of their parameters, which the decorator may have renamed."""
        return tuple(one for one in self._spec.inputs if one.name in self._arguments)

    def _results(self) -> Iterator[Finding]:
        returns = [node for node in self._nodes if isinstance(node, ast.Return) and node.value is not None]
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in self._nodes)
        if self._spec.style is Style.REQUEST_REPLY:
            for node in returns:
                if isinstance(node.value, ast.GeneratorExp):
                    text = (
                        f"'{self._spec.name}' is request/reply, but it returns a generator; "
                        "annotate its parameter and its result Iterator[...] to stream"
                    )
                    yield self._finding(node, text)
        elif self._spec.call.result in (ResultShape.STREAM, ResultShape.SEVERAL) and not yields and not returns:
            ends = any(isinstance(node, ast.Raise) for node in self._nodes)
            is_plain = self._spec.is_async and isinstance(self._tree, ast.FunctionDef)
            fix = f"write `async def {self._tree.name}` and yield its values" if is_plain else "yield its values"
            if not ends:
                text = f"'{self._spec.name}' promises an iterator, but neither yields nor returns; {fix}"
                yield self._finding(self._tree, text)
        if self._spec.call.result is ResultShape.SEVERAL:
            for node in returns:
                yield from self._shared(node)

    def _shared(self, node: ast.Return) -> Iterator[Finding]:
        """Find a stream that two of the returned iterators read.

        Each would get only the items that the other has not got.
        """
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else []
        for name in {one.name for one in self._parameters() if not one.single} - self._locals:
            readers = [number for number, part in enumerate(parts) if _reads(part, name)]
            if len(readers) > 1:
                text = (
                    f"outputs {readers[0]} and {readers[1]} both read '{name}', so each gets only the values that the "
                    f"other leaves; give each a branch of its own: `a, b = tee({name})`, from invoker"
                )
                yield self._finding(node, text, is_error=False)

    def _resolve(self, node: ast.expr) -> Any:
        """The object to which an expression like ``module.name`` refers; None if that is not certain."""
        if isinstance(node, ast.Attribute):
            is_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            owner = self._class() if is_self else self._resolve(node.value)
            return None if owner is None else inspect.getattr_static(owner, node.attr, None)
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._locals or node.id in self._arguments:
            return None
        if node.id in self._closure:
            return self._closure[node.id]
        return getattr(self._inner, "__globals__", {}).get(node.id, getattr(builtins, node.id, None))

    def _class(self) -> Any:
        """The class whose method is read, found by its qualified name."""
        path = self._inner.__qualname__.split(".")[:-1]
        if not path or "<locals>" in path:
            return None
        owner: Any = self._inner.__globals__.get(path[0])
        for part in path[1:]:
            owner = getattr(owner, part, None)
        return owner

    def _finding(self, node: ast.AST, text: str, *, is_error: bool = True) -> Finding:
        return Finding(is_error, text, f"{self._file}:{getattr(node, 'lineno', '?')}")


def _own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a function's body, without those of functions nested in it."""
    body: list[ast.AST] = list(getattr(tree, "body", []))
    while body:
        node = body.pop()
        yield node
        if not isinstance(node, _SCOPES):
            body.extend(ast.iter_child_nodes(node))


def _assigned(nodes: list[ast.AST]) -> set[str]:
    """Names that the body assigns, so that they differ from the module's; parameters are not among them."""
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return names | {alias.asname or alias.name.partition(".")[0] for one in imports for alias in one.names}


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _iterated(node: ast.AST) -> ast.expr | None:
    """The expression that a sync loop or comprehension iterates over."""
    if isinstance(node, ast.For) or (isinstance(node, ast.comprehension) and not node.is_async):
        return node.iter
    return None
