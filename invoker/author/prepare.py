"""`prepare`: loads the functions of an entrypoint, and checks them, for serving, inspecting and testing.

Each function is loaded, its signature is read and checked, and it is lifted. Every mistake that can be found without
running the function is reported here, before a port is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from invoker.author.checks import Finding, check
from invoker.author.lift import Function, lift
from invoker.author.loader import Catalogue, load, only_function
from invoker.author.reader import read
from invoker.author.spec import HOOK_TIMEOUT_S, IGNORED, FunctionSpec, StreamSpec
from invoker.errors import ConfigError, SpecError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function that is ready to be started, and the warnings about it.

    Attributes:
        function: The function, to be started, served and stopped.
        warnings: The warnings of the checks; none of them keeps the function from being served.
    """

    function: Function
    warnings: tuple[Finding, ...] = ()

    @property
    def spec(self) -> FunctionSpec:
        """The spec that was read from the signature."""
        return self.function.spec


def prepare(
    entrypoint: str, *, allow_pickle: bool = False, fresh: bool = False, hook_timeout_s: float = HOOK_TIMEOUT_S
) -> tuple[Prepared, ...]:
    """Load the one function or the catalogue that an entrypoint names, ready to run.

    Args:
        entrypoint: See `invoker.author.loader.load`.
        allow_pickle: Whether a pickle may be loaded, which runs its code.
        fresh: Whether the module is executed anew.
        hook_timeout_s: Time limit of each hook for which the author gives none.

    Raises:
        StartupError: The function cannot be loaded, understood or served; the text is one sentence with the fix.
    """
    found = load(entrypoint, allow_pickle=allow_pickle, fresh=fresh)
    if isinstance(found, Catalogue):
        return _catalogue(found, hook_timeout_s=hook_timeout_s)
    name = _name(entrypoint)
    return (prepare_function(found, entrypoint=entrypoint.strip(), name=name, hook_timeout_s=hook_timeout_s),)


def prepare_all(
    what: Iterable[Any], *, allow_pickle: bool = False, fresh: bool = False, hook_timeout_s: float = HOOK_TIMEOUT_S
) -> tuple[Prepared, ...]:
    """Make several functions ready to run, each given as an object or by its entrypoint.

    Args:
        what: Functions of any shape, modules with functions, and entrypoints of either.
        allow_pickle: As for `prepare`.
        fresh: As for `prepare`; only for entrypoints.
        hook_timeout_s: As for `prepare`.

    Raises:
        StartupError: A function cannot be loaded, understood or served, or two have the same name.
    """
    served: dict[str, Prepared] = {}
    for one in what:
        if isinstance(one, str):
            found = prepare(one, allow_pickle=allow_pickle, fresh=fresh, hook_timeout_s=hook_timeout_s)
        elif isinstance(one, ModuleType):
            found = _module(one, hook_timeout_s=hook_timeout_s)
        else:
            found = (prepare_function(one, name=_name_of(one), hook_timeout_s=hook_timeout_s),)
        for made in found:
            _add(made, served)
    return tuple(served.values())


def _module(module: ModuleType, *, hook_timeout_s: float) -> tuple[Prepared, ...]:
    found = only_function(module.__name__, module)
    if isinstance(found, Catalogue):
        return _catalogue(found, hook_timeout_s=hook_timeout_s)
    return (prepare_function(found, hook_timeout_s=hook_timeout_s),)


def _catalogue(found: Catalogue, *, hook_timeout_s: float) -> tuple[Prepared, ...]:
    served: dict[str, Prepared] = {}
    for attribute, function in found.functions.items():
        # A program cannot be imported by another process by its name.
        full = "" if found.module == "__main__" else f"{found.module}:{attribute}"
        _add(prepare_function(function, entrypoint=full, name=attribute, hook_timeout_s=hook_timeout_s), served)
    return tuple(served.values())


def _add(made: Prepared, served: dict[str, Prepared]) -> None:
    """Add a function to those that are served.

    Raises:
        SpecError: Another function has its name.
    """
    name = made.spec.name
    if (other := served.setdefault(name, made)) is made:
        return
    full = [one.spec.entrypoint for one in (made, other)]
    both = f"'{full[0]}' and '{full[1]}' are both" if all(full) else "two functions are"
    raise SpecError(f"{both} named '{name}'; give one of them another @function(name=...)")


def _name_of(function: Any) -> str:
    """The name ``lambda`` for a lambda; empty for all other functions, which have a name."""
    return "lambda" if getattr(function, "__name__", "") == "<lambda>" else ""


def with_actions(
    found: Iterable[Prepared],
    actions: Iterable[tuple[str, str]],
    *,
    allow_pickle: bool = False,
    hook_timeout_s: float = HOOK_TIMEOUT_S,
) -> tuple[tuple[Prepared, ...], dict[str, str]]:
    """Find the functions that actions name, and load those that are not served yet (E-071).

    Args:
        found: The functions that are served in any case.
        actions: Names of actions, each with the name of a function that is served, or an entrypoint.
        allow_pickle: As for `prepare`.
        hook_timeout_s: As for `prepare`.

    Returns:
        All functions, and a dict from the name of each action to the name of its function. A function whose name is
        taken is named by its whole entrypoint.

    Raises:
        StartupError: One cannot be loaded, understood or served, or an action has two functions.
    """
    served = {one.spec.name: one for one in found}
    by_action: dict[str, str] = {}
    for action, target in actions:
        known = [one for one in served.values() if target in (one.spec.name, one.spec.entrypoint)]
        if not known:
            if ":" not in target:
                raise ConfigError(
                    f"the action '{action}' is set to '{target}', which is neither module:function nor one of the "
                    f"functions that are served: {', '.join(served)}"
                )
            known = [_action(target, served, allow_pickle=allow_pickle, hook_timeout_s=hook_timeout_s)]
            served[known[0].spec.name] = known[0]
        if by_action.setdefault(action, known[0].spec.name) != known[0].spec.name:
            raise ConfigError(f"the action '{action}' is set to both '{by_action[action]}' and '{known[0].spec.name}'")
    return tuple(served.values()), by_action


def with_functions(
    found: Iterable[Prepared],
    entrypoints: Iterable[str],
    *,
    allow_pickle: bool = False,
    hook_timeout_s: float = HOOK_TIMEOUT_S,
) -> tuple[Prepared, ...]:
    """Load the functions of entrypoints that are not served yet; one whose name is taken is named by its entrypoint.

    Raises:
        StartupError: One cannot be loaded, understood or served.
    """
    served = {one.spec.name: one for one in found}
    for target in entrypoints:
        if all(target != one.spec.entrypoint for one in served.values()):
            made = _action(target, served, allow_pickle=allow_pickle, hook_timeout_s=hook_timeout_s)
            served[made.spec.name] = made
    return tuple(served.values())


def _action(target: str, served: dict[str, Prepared], *, allow_pickle: bool, hook_timeout_s: float) -> Prepared:
    found = load(target, allow_pickle=allow_pickle)
    if isinstance(found, Catalogue):
        raise SpecError(f"'{target}' names several functions; one is needed here, as in module:function")
    made = prepare_function(found, entrypoint=target, name=_name(target), hook_timeout_s=hook_timeout_s)
    if made.spec.name in served:
        made = prepare_function(found, entrypoint=target, name=target, hook_timeout_s=hook_timeout_s)
    if made.spec.name not in served:
        return made
    other = served[made.spec.name].spec.entrypoint
    raise SpecError(f"'{target}' and '{other}' are both named '{made.spec.name}'; give one another @function(name=...)")


def prepare_function(
    function: Any, *, entrypoint: str = "", name: str = "", hook_timeout_s: float = HOOK_TIMEOUT_S
) -> Prepared:
    """Check and lift one function that is already loaded.

    Raises:
        StartupError: The function cannot be understood or served.
    """
    spec = read(function, entrypoint=entrypoint, name=name)
    _check_types(spec)
    findings = check(function, spec)
    for finding in findings:
        if finding.is_error:
            raise SpecError(f"{finding.text} ({finding.where})")
    return Prepared(lift(function, spec, hook_timeout_s=hook_timeout_s), findings)


def _name(entrypoint: str) -> str:
    """The attribute that an entrypoint names, if it names one."""
    attribute = entrypoint.strip().rpartition(":")[2]
    is_one = ":" in entrypoint and attribute.replace(".", "").isidentifier()
    return attribute.rpartition(".")[2] if is_one else ""


def _check_types(spec: FunctionSpec) -> None:
    from invoker.codecs import decodable, wants_arrays  # imported only once a function is found
    from invoker.codecs.validated import unapplied

    if wants_arrays(spec.types):
        _check_arrays(spec)
    for kind, one in _streams(spec):
        if (problem := unapplied(one.type)) is not None:
            raise SpecError(f"{kind} '{one.name}' of '{spec.name}': {problem}")
    for index, stream in enumerate(spec.inputs):
        if stream.type is IGNORED or stream.media_types:
            continue  # this input is never decoded, or only by a codec of the author
        problem = decodable(stream.type, spec.modules)
        if problem is not None:
            raise SpecError(f"input #{index} '{stream.name}' of '{spec.name}' cannot be decoded: {problem}")


def _streams(spec: FunctionSpec) -> list[tuple[str, StreamSpec]]:
    several = [("input", one) for one in (*spec.inputs, *spec.optional)]
    return several + [("output", one) for one in (*spec.outputs, *spec.parts)]


def _check_arrays(spec: FunctionSpec) -> None:
    """Refuse array annotations with an invalid shape, whatever protocols are served."""
    from invoker.codecs import wants_arrays
    from invoker.codecs.typed import leaves
    from invoker.tensors import shape_of

    for kind, stream in _streams(spec):
        for one in leaves(stream.type):
            if wants_arrays([one]):
                shape_of(one, f"{kind} '{stream.name}' of '{spec.name}'")
