"""Applies what the decorator says about inputs and outputs beside their names: media types, and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from invoker.author.decorator import MediaTypes
from invoker.author.signature import Facts
from invoker.author.spec import StreamSpec
from invoker.author.spelling import is_array, render
from invoker.errors import SpecError
from invoker.tensors.declared import Tensor

__all__ = ["with_media_types", "with_tensors"]


def with_media_types(
    facts: Facts, specs: tuple[StreamSpec, ...], said: MediaTypes, option: str
) -> tuple[StreamSpec, ...]:
    """Say in which media types values travel.

    Raises:
        SpecError: A media type is malformed, or a name belongs to no stream.
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
