"""`@function`: sets options that a signature cannot express, and marks the functions of a module as a catalogue.

The decorator never wraps: the decorated object is returned as it was, so it can be called and tested as before. An
undecorated function is always enough to be served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, Unpack, overload

from invoker.author.formerwords import FORMER, Former, translated
from invoker.author.protocoloptions import ProtocolOption, by_type
from invoker.author.spec import Style, Take
from invoker.errors import SpecError
from invoker.errors.wording import nearest
from invoker.tensors.declared import Tensor

ATTRIBUTE = "__invoker_options__"
"""The attribute that holds the `Options` of a decorated function."""

MediaTypes: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""One or several media types for every stream, or a mapping from stream names to media types."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of the decorator; None means that the signature decides."""

    name: str = ""
    style: Style | None = None
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    input_types: MediaTypes = ()
    output_types: MediaTypes = ()
    concurrency: int = 1
    batch_max: int = 1
    batch_wait_ms: float = 5.0
    version: str = ""
    argument_type: Take | None = None
    init: Any = None
    destroy: Any = None
    ready: Any = None
    hook_timeout_s: float | None = None
    timeout_s: float | None = None
    max_calls: int = 0
    calls_per_minute: int = 0
    memory_bytes: int = 0
    isolation: str = ""
    examples: tuple[str, ...] = ()
    safe: bool = False
    options: Mapping[type, ProtocolOption] = field(default_factory=dict)
    input_tensors: Mapping[str, Tensor] = field(default_factory=dict)
    output_tensors: Mapping[str, Tensor] = field(default_factory=dict)


@overload
def function(target: F, /) -> F: ...
@overload
def function(
    *,
    name: str = "",
    style: Style | str | None = None,
    inputs: Sequence[str] | Mapping[str, Tensor] | str | None = None,
    outputs: Sequence[str] | Mapping[str, Tensor] | str | None = None,
    input_types: MediaTypes = (),
    output_types: MediaTypes = (),
    concurrency: int = 1,
    batch_max: int = 1,
    batch_wait_ms: float = 5.0,
    version: str = "",
    argument_type: Take | str | None = None,
    init: Callable[[], Any] | None = None,
    destroy: Callable[[], Any] | None = None,
    ready: Callable[[], Any] | None = None,
    hook_timeout_s: float | None = None,
    timeout_s: float | None = None,
    max_calls: int = 0,
    calls_per_minute: int = 0,
    memory_bytes: int = 0,
    isolation: str = "",
    examples: Iterable[str] = (),
    safe: bool = False,
    options: Iterable[ProtocolOption] = (),
    **former: Unpack[Former],
) -> Callable[[F], F]: ...
def function(target: Any = None, /, **said: Any) -> Any:  # noqa: D417 - the overload lists the options
    """Set options that a signature cannot express; ``@function`` and ``@function(...)`` both work.

    It returns the decorated function unchanged. A function needs no decorator to be served. When a module has decorated
    functions, ``python -m invoker mymod`` serves all of them.

    Args:
        name: The name by which callers choose the function, instead of its own name.
        style: ``"request/reply"`` or ``"streaming"``, instead of the style that the signature implies.
        inputs: Names of the inputs in their order: either names of parameters, which also turns parameters with
            defaults and keyword-only ones into inputs, or new names, one for each input. A mapping from names to
            ``Tensor(...)`` also sets types and shapes, for functions without annotations.
        outputs: Names of the outputs, or a mapping as for ``inputs``. They fix the number of outputs if the signature
            does not. A function that returns tuples, or dicts by these names, gives one value to each output.
        input_types: Media types of the inputs; one, several, or a mapping by name.
        output_types: Media types of the outputs; one, several, or a mapping by name.
        concurrency: How many calls of an async request/reply function may overlap within one invocation (R-035).
        batch_max: GraphPipe joins requests that come at the same time into one of this many rows at most; 1 joins none.
        batch_wait_ms: How many milliseconds the first of these requests waits for others.
        version: The version of the function, as clients see it; the default is ``__version__`` of its module or its
            package.
        argument_type: ``"payload"``, ``"message"`` or ``"headers"``: what each input receives that is not annotated as
            one of these (R-040).
        init: A hook that runs once, before the first invocation.
        destroy: A hook that runs once, after the last invocation.
        ready: A function that returns whether this one can take work.
        hook_timeout_s: Seconds that each hook may take; the default is ``INVOKER_HOOK_TIMEOUT_S``.
        timeout_s: Seconds that an invocation may take; then the caller gets an error, and the function is stopped.
        max_calls: Invocations of all callers that may run in the function at once; one more fails at once. 0: no limit.
        calls_per_minute: Invocations that one party may begin within any 60 seconds; one more fails at once. 0: no
            limit.
        memory_bytes: Bytes of memory that an invocation may take; enforced with ``isolation="process"``. 0: no limit.
        isolation: ``"process"`` runs each invocation in a child process, which can be killed.
        examples: Example calls for callers, besides those after ``>>>`` in the docstring.
        safe: True if a call changes nothing that matters, so that GET may call it, as browsers and caches do at will.
        options: Options of single protocols, such as ``graphpipe.Casting(inputs="same_kind")``; at most one of each
            class. Other protocols ignore them.
        former: Keywords that have become options of a protocol; they are accepted until 0.2, with a warning.

    Raises:
        SpecError: A keyword or an option is unknown, or has an invalid value.
    """
    if target is not None and not said:
        return _mark(target, Options())
    given = said.pop("options", ())
    former = translated(said, stacklevel=3)
    options = _options(said)
    if former and isinstance(given, Iterable) and not isinstance(given, str):
        given = (*former, *given)

    def decorate(decorated: Any) -> Any:
        name = options.name or getattr(decorated, "__name__", type(decorated).__name__)
        return _mark(decorated, replace(options, options=by_type(given, name)))

    return decorate


def options_of(target: Any) -> Options | None:
    """The options with which a function was decorated, or None."""
    found = getattr(target, ATTRIBUTE, None)
    return found if isinstance(found, Options) else None


def _mark(target: Any, options: Options) -> Any:
    try:
        setattr(target, ATTRIBUTE, options)
    except (AttributeError, TypeError):
        raise SpecError(
            f"a {type(target).__name__} cannot be decorated with @function; "
            "wrap it in a function or a functools.partial"
        ) from None
    return target


def _options(said: dict[str, Any]) -> Options:
    known = [name for name in Options.__dataclass_fields__ if name not in ("input_tensors", "output_tensors")]
    for name in said:
        if name not in known:
            near = nearest(name, [*known, *FORMER])
            raise SpecError(
                f"@function has no option '{name}'; "
                + (f"did you mean '{near}'?" if near else f"it has {', '.join(known)}")
            )
    _check(said)
    changed = dict(said)
    changed["style"] = _member(Style, "style", said.get("style"))
    changed["argument_type"] = _member(Take, "argument_type", said.get("argument_type"))
    for option in ("inputs", "outputs"):
        changed[option] = _names(option, said.get(option))
        changed[f"{option[:-1]}_tensors"] = _tensors(option, said.get(option))
    changed["examples"] = _names("examples", said.get("examples")) or ()
    return Options(**changed)


def _check(said: dict[str, Any]) -> None:
    concurrency = said.get("concurrency", 1)
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise SpecError(f"@function(concurrency={concurrency!r}) must be a whole number of at least 1")
    if not isinstance(said.get("safe", False), bool):
        raise SpecError(f"@function(safe={said['safe']!r}) must be True or False")
    batch_max, wait_ms = said.get("batch_max", 1), said.get("batch_wait_ms", 5.0)
    if isinstance(batch_max, bool) or not isinstance(batch_max, int) or batch_max < 1:
        raise SpecError(f"@function(batch_max={batch_max!r}) must be a whole number of at least 1")
    if isinstance(wait_ms, bool) or not (isinstance(wait_ms, int | float) and 0 <= wait_ms < float("inf")):
        raise SpecError(f"@function(batch_wait_ms={wait_ms!r}) must be a number of milliseconds, 0 or more")
    timeout_s = said.get("hook_timeout_s")
    if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
        raise SpecError(f"@function(hook_timeout_s={timeout_s!r}) must be a number of seconds above 0")
    _check_bounds(said)
    if not isinstance(said.get("version", ""), str):
        raise SpecError(f"@function(version={said['version']!r}) must be text, such as '1.2'")


def _check_bounds(said: dict[str, Any]) -> None:
    timeout_s = said.get("timeout_s")
    is_time = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool) and 0 < timeout_s < float("inf")
    if timeout_s is not None and not is_time:
        raise SpecError(f"@function(timeout_s={timeout_s!r}) must be a number of seconds above 0")
    for option in ("max_calls", "calls_per_minute", "memory_bytes"):
        count = said.get(option, 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise SpecError(f"@function({option}={count!r}) must be a whole number, 0 (which is no limit) or more")
    if said.get("isolation", "") not in ("", "process"):
        raise SpecError(f"@function(isolation={said['isolation']!r}) is unknown; it can be 'process', or '' for none")


def _member(kind: type[Any], option: str, value: Any) -> Any:
    if value is None or isinstance(value, kind):
        return value
    values = [member.value for member in kind]
    if isinstance(value, str) and value.replace("_", "/").replace("-", "/") in values:
        return kind(value.replace("_", "/").replace("-", "/"))
    near = nearest(str(value), values)
    hint = f"did you mean {near!r}? It" if near else "it"
    raise SpecError(f"@function({option}={value!r}) is unknown; {hint} can be {', '.join(map(repr, values))}")


def _names(option: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise SpecError(f"@function({option}=...) takes names; {name!r} is a {type(name).__name__}")
    return names


def _tensors(option: str, value: Any) -> Mapping[str, Tensor]:
    if not isinstance(value, Mapping):
        return {}
    for name, one in value.items():
        if not isinstance(one, Tensor):
            raise SpecError(
                f"@function({option}=...) maps '{name}' to a {type(one).__name__}; write Tensor('float32', [-1, 3])"
            )
    return dict(value)
