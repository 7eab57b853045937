"""Applies the decorator's media types and tensors to inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from invoker.author.decorator import MediaTypes
from invoker.author.signature import Facts
from invoker.author.spec import StreamSpec
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array
from invoker.errors import SpecError
from invoker.errors.wording import suggestion
from invoker.tensors.declared import Tensor


def with_media_types(
    facts: Facts, specs: tuple[StreamSpec, ...], said: MediaTypes, option: str
) -> tuple[StreamSpec, ...]:
    """Set the media types of values.

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
        SpecError: An annotation contradicts the declared tensor, or numpy is not installed.
    """
    if not said:
        return specs
    try:
        from invoker.tensors.arrays import annotation_of
    except ImportError as error:
        text = f"'{facts.name}' declares tensors, which needs numpy ({error}); pip install numpy"
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
            hint = suggestion(name, names)
            raise SpecError(f"@function({option}=...) of '{facts.name}' names '{name}', which it does not have; {hint}")


def _media_types(facts: Facts, said: str | Iterable[str], option: str) -> tuple[str, ...]:
    from invoker.mediatypes import parse  # only decorated functions need this import

    types = (said,) if isinstance(said, str) else tuple(said)
    for text in types:
        try:
            parse(text)
        except ValueError as error:
            raise SpecError(
                f"@function({option}=...) of '{facts.name}' has {text!r}, which is not a media type ({error}); "
                "write one like 'image/png'"
            ) from None
    return types


def _says_nothing(type_: Any) -> bool:
    """Whether an annotation does not determine the element type of a tensor, such as ``np.ndarray``."""
    return type_ is Any or type_ is object or (isinstance(type_, type) and is_array(type_))
