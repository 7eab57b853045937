"""Examines any callable: finds the innermost function, its parameters, and their annotations as objects.

A callable may be several layers: a partial of a decorated method, an instance with ``__call__``, a class that is
instantiated at start. `examine` looks through all of them. Annotations written as strings are resolved here, also those
whose names were imported under ``TYPE_CHECKING`` from `typing` or `collections.abc`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from invoker import context, message
from invoker.author.annotations import Returned, read_return
from invoker.author.decorator import Options, options_of
from invoker.author.spec import ResultShape
from invoker.author.spelling import render
from invoker.codecs.members import members_of
from invoker.errors import SpecError
from invoker.fields.aliases import is_typed_dict, is_unpack

_EMPTY: Final = inspect.Parameter.empty
_MOST_LAYERS: Final = 50


class _LeftOut:
    """The default of a TypedDict's optional key: if no caller gives the key, it is not passed to the function."""

    def __repr__(self) -> str:
        return "left out"


_LEFT_OUT: Final = _LeftOut()
_TYPES_FOR: Final = {
    any: "write Any, from typing",
    iter: "write Iterator[...], from collections.abc",
    aiter: "write AsyncIterator[...], from collections.abc",
    callable: "write Callable[...], from collections.abc",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of a callable, before its inputs and outputs are determined.

    Attributes:
        name: The name for messages and for the catalogue.
        doc: Cleaned docstring.
        parameters: The parameters with resolved annotations; those that a partial binds have a default.
        returned: The outputs that the return annotation declares.
        is_coroutine, is_generator, is_async_generator: The kind of the callable; see `_kind`.
        is_class: Whether the callable is a class, which is instantiated at start.
        globals: The globals of the module of the innermost layer.
        names: The names that its code mentions.
        options: The options of the decorator.
        keys: Parameters that come from a TypedDict that ``**options`` unpacks; every caller has to give them by name.
    """

    name: str
    doc: str
    parameters: tuple[inspect.Parameter, ...]
    returned: Returned
    is_coroutine: bool
    is_generator: bool
    is_async_generator: bool
    is_class: bool
    globals: Mapping[str, Any]
    names: frozenset[str]
    options: Options
    keys: frozenset[str]


def examine(function: Any, name: str = "") -> Facts:
    """Examine a callable.

    Raises:
        SpecError: The object cannot be called, or its signature cannot be read.
    """
    chain = list(layers(function))
    inner, own = chain[-1], called(function)
    kind = _kind([own, *chain])
    options = next((found for layer in chain if (found := options_of(layer)) is not None), Options())
    name = name or options.name or name_of(function)
    if not callable(function):
        raise SpecError(f"'{name}' is of type {type(function).__name__}, which cannot be called; name a function")
    if isinstance(function, type):
        _check_makeable(function, name)
    resolve = _Resolver(name, inner)
    taken, returned = _taken_apart(function, name)
    resolved = (one.replace(annotation=resolve(one.annotation, f"parameter '{one.name}'")) for one in taken)
    parameters = tuple(each for one in resolved for each in _unpacked(one, name))
    code = getattr(inner, "__code__", None)
    return Facts(
        name=name,
        doc=_doc(function, inner),
        parameters=parameters,
        returned=_as_called(_returned(resolve(returned, "the result"), name), kind, is_own=own is inner),
        is_coroutine=kind is inspect.iscoroutinefunction,
        is_generator=kind is inspect.isgeneratorfunction,
        is_async_generator=kind is inspect.isasyncgenfunction,
        is_class=isinstance(function, type),
        globals=getattr(inner, "__globals__", {}),
        names=frozenset(code.co_names) if code is not None else frozenset(),
        options=options,
        keys=frozenset(one.name for one in parameters) - {one.name for one in taken},
    )


def layers(function: Any) -> Iterator[Any]:
    """The callable itself, then the objects that it wraps, down to the author's own function."""
    for _ in range(_MOST_LAYERS):
        yield function
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif (wrapped := inspect.getattr_static(function, "__wrapped__", None)) is not None:
            function = wrapped.__func__ if isinstance(wrapped, staticmethod | classmethod) else wrapped
        elif (called := _called(function)) is not None:
            function = called
        else:
            return


def called(function: Any) -> Any:
    """The function that runs when a callable is called.

    Partials, methods and ``__call__`` are followed; wrapped functions are not.
    """
    for _ in range(_MOST_LAYERS):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType | staticmethod | classmethod):
            function = function.__func__
        elif _kind_of(function) is None and (found := _called(function)) is not None:
            function = found
        else:
            break
    return function


def _kind_of(layer: Any) -> Callable[[Any], bool] | None:
    asks = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return next((ask for ask in asks if ask(layer)), None)


def _kind(layers_: list[Any]) -> Callable[[Any], bool] | None:
    """The kind of a callable: of its outermost layer that is a coroutine or generator function for `inspect`.

    A plain function that wraps a coroutine function counts as plain: it may block, so it runs in a thread, and its
    result is awaited there. A plain function that wraps a generator function yields the values of that generator.
    """
    found = next((kind for layer in layers_ if (kind := _kind_of(layer)) is not None), None)
    is_plain = _kind_of(layers_[0]) is None
    return None if is_plain and found is inspect.iscoroutinefunction else found


def _as_called(returned: Returned, kind: Callable[[Any], bool] | None, *, is_own: bool) -> Returned:
    """The wrapper's return annotation, adapted if it was copied from a function of another kind."""
    if is_own or kind is None:
        return returned
    if kind is not inspect.iscoroutinefunction and returned.result not in (ResultShape.STREAM, ResultShape.UNKNOWN):
        return read_return(_EMPTY)  # the function yields, and no annotation says what
    stream = "sync" if kind is inspect.isgeneratorfunction else "async"
    return replace(returned, stream=stream if returned.stream else "", awaited=False)


def name_of(function: Any) -> str:
    """The name that an author would use for the function."""
    for layer in layers(function):
        name = getattr(layer, "__name__", "")
        if isinstance(name, str) and name and name != "__call__":
            return name
        if not isinstance(layer, functools.partial) and hasattr(type(layer), "__call__"):  # noqa: B004 - not a check for a callable
            return type(layer).__name__
    return type(function).__name__


def _called(function: Any) -> Any:
    """The ``__call__`` of a class or an instance; None for plain functions and for builtins."""
    kind = function if isinstance(function, type) else type(function)
    if kind.__module__ == "builtins" or isinstance(function, types.FunctionType):
        return None
    for base in kind.__mro__:
        if base is not object and "__call__" in vars(base):
            found = vars(base)["__call__"]
            return found.__func__ if isinstance(found, staticmethod | classmethod) else found
    return None


def _check_makeable(kind: type[Any], name: str) -> None:
    if _called(kind) is None:
        raise SpecError(
            f"'{name}' is a class without __call__, so its instances cannot be invoked; "
            "give it a method __call__(self, ...), or name a function"
        )
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise SpecError(f"'{name}' is an abstract class and cannot be instantiated; implement {missing}")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise SpecError(
            f"'{name}' is a class whose constructor needs arguments ({error}); give them defaults, "
            f"or make an instance in the module and name that"
        ) from None
    except ValueError:
        return  # without a signature, an error only shows when the instance is made


def _taken_apart(function: Any, name: str) -> tuple[list[inspect.Parameter], Any]:
    """The parameters and the return annotation of the innermost function that is called."""
    try:
        if isinstance(function, functools.partial):
            return _partial(function, name)
        is_static = isinstance(inspect.getattr_static(function, "__call__", None), staticmethod)
        if isinstance(function, type) or is_static:
            signature = inspect.signature(_called(function))
            parameters = list(signature.parameters.values())
            return parameters if is_static else parameters[1:], signature.return_annotation
        signature = inspect.signature(function)
    except ValueError:  # a builtin without a signature most often takes one value
        return [inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY)], _EMPTY
    except NameError as error:
        text = f"an annotation of '{name}' cannot be resolved: {error}; import that name at run time"
        raise SpecError(text) from None
    return list(signature.parameters.values()), signature.return_annotation


def _partial(function: functools.partial[Any], name: str) -> tuple[list[inspect.Parameter], Any]:
    """As `inspect.signature`, but parameters after one that the partial binds by keyword stay inputs."""
    parameters, returned = _taken_apart(function.func, name)
    bound = len(function.args)
    fixed = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if bound > len(fixed) and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        raise SpecError(f"the partial '{name}' binds {bound} arguments, but its function takes only {len(fixed)}")
    unknown = set(function.keywords) - {one.name for one in parameters}
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        raise SpecError(f"the partial '{name}' binds '{min(unknown)}', which its function does not take")
    left = parameters[min(bound, len(fixed)) :]
    known = function.keywords
    return [one.replace(default=known[one.name]) if one.name in known else one for one in left], returned


def _unpacked(one: inspect.Parameter, name: str) -> Iterator[inspect.Parameter]:
    """The parameters in the TypedDict of ``**options: Unpack[...]``; any other parameter is returned unchanged."""
    if not is_unpack(one.annotation):
        yield one
        return
    (unpacked,) = typing.get_args(one.annotation)
    cls = typing.get_origin(unpacked) or unpacked
    found = members_of(cls, typing.get_args(unpacked)) if one.kind is one.VAR_KEYWORD and is_typed_dict(cls) else None
    if found is None:
        text = (
            f"parameter '{one.name}' of '{name}' unpacks {render(unpacked)}; only **{one.name} can unpack a TypedDict"
        )
        raise SpecError(text)
    for key in found.properties:
        if not key.name.isidentifier():
            raise SpecError(
                f"parameter '{one.name}' of '{name}' unpacks the key {key.name!a}, which cannot be the name of a "
                "parameter"
            )
        default = _EMPTY if key.is_required else _LEFT_OUT
        yield inspect.Parameter(key.name, one.KEYWORD_ONLY, default=default, annotation=key.annotation)


def _returned(annotation: Any, name: str) -> Returned:
    try:
        return read_return(annotation)
    except SpecError as error:
        raise SpecError(f"the result of '{name}': {error.detail}") from None
    except (TypeError, NameError) as error:
        text = f"the result of '{name}', annotated {render(annotation)}, was not understood: {error}"
        raise SpecError(text) from None


def _doc(function: Any, inner: Any) -> str:
    own = function if not isinstance(function, functools.partial) else inner
    doc = inspect.getdoc(own) if isinstance(getattr(own, "__doc__", None), str) else None
    doc = doc or (inspect.getdoc(inner) or "" if inspect.isroutine(inner) else "")
    return "" if doc == type.__call__.__doc__ else doc  # Python's own text for a class without a docstring


class _Resolver:
    """Resolves annotations that are strings to objects."""

    def __init__(self, name: str, inner: Callable[..., Any]) -> None:
        self._name = name
        self._globals: dict[str, Any] = getattr(inner, "__globals__", {})
        parameters = getattr(inner, "__type_params__", ())  # type parameters of `def f[T](...)`, from Python 3.12 on
        self._locals = _closure(inner) | {one.__name__: one for one in parameters}

    def __call__(self, annotation: Any, where: str) -> Any:
        if annotation is _EMPTY or annotation is inspect.Signature.empty:
            return _EMPTY
        found = self._resolved(annotation, where)
        if (wrong := _builtin_in(found)) is not None:
            raise SpecError(
                f"the annotation of {where} of '{self._name}' has {wrong.__name__}, which is a function and not a "
                f"type; {_TYPES_FOR[wrong]}"
            )
        return found

    def _resolved(self, annotation: Any, where: str) -> Any:
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        known = _well_known()
        local = {key: value for key, value in known.items() if key not in self._globals} | self._locals
        try:
            return typing.get_type_hints(holder, self._globals, local, include_extras=True)["it"]
        except SpecError as error:  # the error may come from a Field, for example
            raise SpecError(f"{where} of '{self._name}': {error.detail}") from None
        except NameError as error:
            raise SpecError(
                f"the annotation {annotation!r} of {where} of '{self._name}' cannot be resolved: {error}; "
                "import that name at run time, not only under TYPE_CHECKING"
            ) from None
        except Exception as error:  # noqa: BLE001 - an annotation is any expression of the author
            raise SpecError(
                f"the annotation {annotation!r} of {where} of '{self._name}' is not a type: {error}; annotate a type"
            ) from None


def _builtin_in(annotation: Any) -> Any:
    """The builtin function in an annotation in place of a type, such as ``any``; None if there is none."""
    if isinstance(annotation, types.BuiltinFunctionType) and annotation in _TYPES_FOR:
        return annotation
    found = (_builtin_in(one) for one in typing.get_args(annotation) if isinstance(one, typing.Hashable))
    return next((one for one in found if one is not None), None)


@functools.cache
def _well_known() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for module in (typing, abc):
        names |= {name: getattr(module, name) for name in module.__all__}
    names |= {"typing": typing, "collections": sys.modules["collections"]}
    return (
        names
        | {"Message": message.Message, "Headers": message.Headers, "Output": message.Output}
        | {"Context": context.Context}
    )


def _closure(inner: Callable[..., Any]) -> dict[str, Any]:
    """Names of an enclosing function, which a string annotation may mention."""
    found = {}
    names = getattr(getattr(inner, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(inner, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # the variable is not assigned yet
    return found
