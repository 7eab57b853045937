"""`Catalog`: the functions that one process serves, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from invoker.author.lift import Function
from invoker.author.spec import FunctionSpec
from invoker.errors import ProtocolViolation
from invoker.errors.wording import spelt


class Catalog:
    """The functions of this process by name, in the order in which they were given.

    Args:
        functions: At least one; names are unique.
        renew: Makes a function anew for one invocation, to protect it from leaked module state (R-010); None: it is
            shared.
        tells: Whether error texts and lists may show callers the names of the functions (H-062).

    Attributes:
        renews: Whether each invocation gets a function of its own.
        told: The names that callers may see; lists of functions and hints contain no others.

    Raises:
        ValueError: Two functions bear the same name.
    """

    def __init__(
        self, functions: list[Function], *, renew: Callable[[Function], Function] | None = None, tells: bool = True
    ) -> None:
        self._renew = renew
        self.renews = renew is not None
        self._functions: dict[str, Function] = {}
        for function in functions:
            if function.spec.name in self._functions:
                raise ValueError(f"two functions are named {function.spec.name!r}; name one with @function(name=...)")
            self._functions[function.spec.name] = function
        self.told: tuple[str, ...] = tuple(self._functions) if tells else ()

    def find(self, name: str) -> Function:
        """The function called ``name``; the only one when ``name`` is empty.

        Raises:
            ProtocolViolation: No such function, or no name although there are several.
        """
        found = self._functions.get(name) or self._named(name)
        return found if self._renew is None else self._renew(found)

    def spec(self, name: str) -> FunctionSpec:
        """The spec of the function that `find` returns for this name, without making the function anew.

        Raises:
            ProtocolViolation: As `find`.
        """
        return self._named(name).spec

    def _named(self, name: str) -> Function:
        if name:
            found = self._functions.get(name) or self._functions.get(spelt(name, self._functions))
            if found is not None:
                return found
            there = f"; this invoker serves {', '.join(self.told)}" if self.told else ""
            raise ProtocolViolation(f"no function is named {name!r}{there}")
        if len(self._functions) == 1:
            return next(iter(self._functions.values()))
        there = f"{len(self.told)} functions ({', '.join(self.told)})" if self.told else "several functions"
        raise ProtocolViolation(f"this invoker serves {there}; name one in the metadata 'invoker-function'")

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)
