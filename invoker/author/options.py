"""What the decorator says of inputs and outputs beside their names: media types, tensors, casting, marks."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Any

from invoker.author.decorator import MediaTypes
from invoker.author.signature import Facts
from invoker.author.spec import StreamSpec
from invoker.author.spelling import UNIONS, is_array, render
from invoker.author.traits import NodeTraits, Traits
from invoker.errors import SpecError
from invoker.tensors.declared import Tensor

__all__ = ["marked", "with_casting", "with_media_types", "with_tensors"]


def with_media_types(
    facts: Facts, specs: tuple[StreamSpec, ...], said: MediaTypes, option: str
) -> tuple[StreamSpec, ...]:
    """Say in which media types values travel.

    Raises:
        SpecError: One is none, or a name is no stream's.
    """
    if not said:
        return specs
    if not isinstance(said, Mapping):
        types = _media_types(facts, said, option)
        return tuple(replace(one, media_types=types) for one in specs)
    _check_names(facts, option, said, [one.name for one in specs])
    known = {name: _media_types(facts, types, option) for name, types in said.items()}
    return tuple(replace(one, media_types=known.get(one.name, ())) for one in specs)


def with_tensors(facts: Facts, specs: tuple[StreamSpec, ...], said: Mapping[str, Tensor]) -> tuple[StreamSpec, ...]:
    """Put declared tensors into the specs whose annotations do not say what array they are (G-068).

    Raises:
        SpecError: An annotation says something else, or numpy is not there.
    """
    if not said:
        return specs
    try:
        from invoker.tensors.arrays import annotation_of
    except ImportError as error:
        text = f"'{facts.name}' declares tensors, which takes numpy ({error}); pip install numpy"
        raise SpecError(text) from None
    made = []
    for one in specs:
        type_ = annotation_of(said[one.name]) if one.name in said else one.type
        if one.name in said and not _says_nothing(one.type) and one.type != type_:
            raise SpecError(
                f"'{one.name}' of '{facts.name}' is annotated {render(one.type)}, and declared as {said[one.name]}; "
                "drop one of them"
            )
        made.append(replace(one, type=type_))
    return tuple(made)


def with_casting(facts: Facts, specs: tuple[StreamSpec, ...], option: str = "casting") -> tuple[StreamSpec, ...]:
    """Let arrays of other types become those that are declared, if the author asks for it (G-061).

    Args:
        facts: Of the function.
        specs: Of its inputs, or of its outputs and their parts.
        option: That of the decorator which is for them, ``casting`` or ``output_casting``.

    Raises:
        SpecError: There are no arrays among them.
    """
    said = getattr(facts.options, option)
    if said == "no":
        return specs
    if not any(is_array(one.type) for one in specs):
        raise SpecError(
            f"@function({option}={said!r}) of '{facts.name}' is for arrays, and no "
            f"{'input' if option == 'casting' else 'output'} is annotated "
            f"as one; annotate NDArray[np.float32] or the like, or drop {option}="
        )
    from invoker.tensors import Casting

    casting = Casting(said)

    def cast(type_: Any) -> Any:
        if typing.get_origin(type_) in UNIONS:
            return typing.Union[tuple(cast(one) for one in typing.get_args(type_))]  # noqa: UP007 - made at run time
        return Annotated[type_, casting] if is_array(type_) else type_

    return tuple(replace(one, type=cast(one.type)) for one in specs)


def marked(facts: Facts, outputs: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
    """Say which outputs are sequences, and which are retained.

    Raises:
        SpecError: A name is no output's.
    """
    names = [one.name for one in outputs]
    sequence, retain = facts.options.sequence, facts.options.retain
    chosen = {}
    for option, said in (("sequence", sequence), ("retain", retain)):
        if not isinstance(said, bool):
            _check_names(facts, option, said, names)
        chosen[option] = {name for name in names if said is True or (said is not False and name in said)}
    return tuple(
        replace(
            one, traits=Traits({NodeTraits: NodeTraits(one.name in chosen["sequence"], one.name in chosen["retain"])})
        )
        for one in outputs
    )


def _check_names(facts: Facts, option: str, said: Iterable[str], names: list[str]) -> None:
    for name in said:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(names) or 'none'}"
            raise SpecError(f"@function({option}=...) of '{facts.name}' names '{name}', which it does not have; {hint}")


def _media_types(facts: Facts, said: str | Iterable[str], option: str) -> tuple[str, ...]:
    from invoker.mediatypes import parse  # only decorated functions need this import

    types = (said,) if isinstance(said, str) else tuple(said)
    for text in types:
        try:
            parse(text)
        except ValueError as error:
            raise SpecError(
                f"@function({option}=...) of '{facts.name}' has {text!r}, which is no media type ({error}); "
                "write one like 'image/png'"
            ) from None
    return types


def _says_nothing(type_: Any) -> bool:
    """Whether the annotation leaves the element type of a tensor open, as ``np.ndarray`` does."""
    return type_ is Any or type_ is object or (isinstance(type_, type) and is_array(type_))
