"""Binds the names that a peer gives to a function, its inputs and its outputs to the indexes of an `Open`.

It is shared by the protocols in which a peer lists ports by name, each with the id of the stream that is connected to
it. Each protocol decides which ports a list may leave out, and how its errors are worded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.errors.wording import known_as, suggestion


class Names:
    """The names of the functions of one process.

    Args:
        specs: Functions of the catalogue; each has its own name and its entrypoint.
        configured: Further names, each with the name or entrypoint of its function; names whose function is not in the
            catalogue are dropped.
        tells: Whether peers may see any name (H-062).

    Attributes:
        offered: The names that a peer may see: configured names first, then the functions' own.
    """

    def __init__(self, specs: Iterable[FunctionSpec], configured: Mapping[str, str], *, tells: bool = True) -> None:
        own = tuple(specs)
        known = {spec.entrypoint: spec for spec in own if spec.entrypoint} | {spec.name: spec for spec in own}
        further = {name: known[function] for name, function in configured.items() if function in known}
        self.offered: dict[str, FunctionSpec] = further | {spec.name: spec for spec in own} if tells else {}
        self._known = known | further

    def __contains__(self, name: str) -> bool:
        return known_as(name, self._known) in self._known

    def get(self, name: str) -> FunctionSpec | None:
        """The function with a name; None if there is none."""
        return self._known.get(name if name.isascii() else known_as(name, self._known))

    def hint(self, name: str) -> str:
        """The name that the peer may have meant, for the end of an error text; empty if the peer may not see names."""
        if not self.offered:
            return ""
        there = f"there are {', '.join(self.offered)}"
        return f"; {suggestion(name, self._known, there)}"


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of a protocol for errors in a list of ports.

    Attributes:
        quote: Quotes a name that the peer sent.
        refuse: Makes the error from a text that follows the name of the call.
    """

    quote: Callable[[str], str]
    refuse: Callable[[str], Exception]


def listed(ports: Iterable[tuple[str, str]], kind: str, words: Words) -> dict[str, str]:
    """Read a list of ports into a dict from names to ids.

    Raises:
        Exception: A name is given twice; the error is the one that ``words`` makes.
    """
    found: dict[str, str] = {}
    for name, id in ports:
        if name in found:
            raise words.refuse(f"has the {kind} {words.quote(name)} twice")
        found[name] = id
    return found


def bind_outputs(
    spec: FunctionSpec, given: Mapping[str, str], words: Words
) -> tuple[tuple[tuple[int, StreamSpec, str], ...], tuple[int, ...]]:
    """The listed outputs, as index, description and id, and the indexes of the outputs that are not listed.

    If there is one output only, or the caller chooses the number of outputs, an output may have any name.

    Raises:
        Exception: There is no output of such a name; the error is the one that ``words`` makes.
    """
    own = (spec.any_output,) * len(given) if spec.open_outputs else spec.outputs
    if spec.open_outputs or len(own) == len(given) == 1:
        ports = zip(own, given.items(), strict=True)
        return tuple((index, replace(one, name=name), id) for index, (one, (name, id)) in enumerate(ports)), ()
    known = {one.name: (index, one) for index, one in enumerate(own)}
    for name in given:
        if name not in known:
            raise words.refuse(f"has no output {words.quote(name)}; it has {', '.join(known) or 'none'}")
    unwanted = tuple(index for name, (index, _) in known.items() if name not in given)
    return tuple((*known[name], id) for name, id in given.items()), unwanted
