"""Options of only one protocol: ``@function(options=[graphpipe.Casting(inputs="same_kind")])``.

The classes of such options are in the folder of their protocol, in `options.py`. A spec holds the options by their
class, so each protocol looks up only its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from invoker.errors import SpecError

if TYPE_CHECKING:
    from invoker.author.spec import FunctionSpec


class ProtocolOption:
    """The base of every option: a subclass is a frozen dataclass whose values are checked when it is made.

    Attributes:
        protocol: The name of the protocol's folder, which authors also use: ``graphpipe``.
    """

    __slots__ = ()
    protocol: ClassVar[str]

    def applied(self, spec: FunctionSpec) -> FunctionSpec:
        """Check that the option fits the function; returns the spec as the option changes it.

        Raises:
            SpecError: The option does not fit the function.
        """
        return spec


class NotInstalled(ProtocolOption):
    """Stands for an option whose protocol is not installed, until the name of the function is known.

    Args:
        protocol: The option's name as authors write it.
        written: The text that the author wrote.
    """

    __slots__ = ("missing", "written")

    def __init__(self, protocol: str, written: str) -> None:
        self.missing = protocol
        self.written = written


def by_type(given: Any, function: str) -> Mapping[type, ProtocolOption]:
    """Take the options of a function.

    Args:
        given: The value of ``options=`` in the decorator.
        function: The name of the function, for errors.

    Raises:
        SpecError: ``given`` is not a sequence of options, has an option twice, or has one whose protocol is not
            installed.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpecError(f"@function(options={given!r}) of '{function}' is not a list; write {_EXAMPLE}")
    found: dict[type, ProtocolOption] = {}
    for one in given:
        if isinstance(one, NotInstalled):
            raise SpecError(
                f"@function({one.written}) of '{function}' is for the protocol {one.missing}, which is not installed"
            )
        if isinstance(one, type) and issubclass(one, ProtocolOption):
            raise SpecError(
                f"@function(options=[{title(one)}]) of '{function}' has a class; write {title(one)}() with its values"
            )
        if not isinstance(one, ProtocolOption):
            raise SpecError(
                f"@function(options=[{one!r}]) of '{function}' has a {type(one).__name__}, which is not an option of a "
                f"protocol; write {_EXAMPLE}"
            )
        if type(one) in found:
            raise SpecError(f"@function(options=[...]) of '{function}' has {title(type(one))} twice; give it once")
        found[type(one)] = one
    return found


def title(kind: type[ProtocolOption]) -> str:
    """The text that authors write for an option: ``graphpipe.Casting``."""
    return f"{kind.protocol}.{kind.__name__}"


_EXAMPLE = "options=[graphpipe.Rows()] or the like"
