"""`Setting`: the description of one setting, with functions that list and read the settings of several classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeAlias

from invoker.errors import ConfigError

Flags: TypeAlias = Mapping[str, str | bool | Sequence[str]]
"""The flags of the command line, by the names of fields; values are a text, a bool, or several texts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The description of one setting besides its name and default.

    Attributes:
        env: Environment variable.
        help: One sentence.
        unit: The unit of the value; empty for names and switches.
        parse: Converts text to a value; raises ValueError with the expected form.
        flag: The flag on the command line; empty: made from the name.
        choices: All allowed values, if they are few.
        many: Whether the flag may be repeated; the variable separates by commas, and the value is a tuple.
        heading: The heading in ``--help`` for this setting and the following ones; empty: that of an earlier setting.
        before: The name of the setting before which it is listed; empty: after the previous one of its class.
    """

    env: str
    help: str
    unit: str
    parse: Callable[[str], Any]
    flag: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False
    heading: str = ""
    before: str = ""


def setting(default: Any, env: str, parse: Callable[[str], Any], help: str, *, unit: str = "", flag: str = "",  # noqa: PLR0913 - one for each attribute
         choices: tuple[str, ...] = (), many: bool = False, heading: str = "", before: str = "") -> Any:  # fmt: skip
    """Make the field of a dataclass that is a setting."""
    about = Setting(env, help, unit, parse, flag, choices, many, heading, before)
    return field(default=default, metadata={"setting": about})


def settings_of(kind: type) -> Iterator[Field[Any]]:
    """The fields of a dataclass that are settings, in its order."""
    return (one for one in fields(kind) if "setting" in one.metadata)


def gathered(kinds: Iterable[type]) -> tuple[Field[Any], ...]:
    """The settings of several dataclasses, in the order of listing.

    A setting that several classes inherit comes once.
    """
    found: list[Field[Any]] = []
    for kind in kinds:
        at = len(found)
        for one in settings_of(kind):
            names = [other.name for other in found]
            if one in found:
                at = names.index(one.name) + 1
                continue
            assert one.name not in names, f"two settings are named {one.name}"
            if before := setting_of(one).before:
                at = names.index(before)
            found.insert(at, one)
            at += 1
    return tuple(found)


def given(kind: type, env: Mapping[str, str], flags: Flags) -> dict[str, Any]:
    """The values that the environment and the command line give to the settings of a dataclass.

    Raises:
        ConfigError: A setting has an invalid value; the text names the variable or flag, and the value (R-004).
    """
    values: dict[str, Any] = {}
    for one in settings_of(kind):
        about, said = setting_of(one), flags.get(one.name)
        if isinstance(said, bool):
            values[one.name] = said
        elif isinstance(said, str):
            values[one.name] = parsed(about, said, flag_of(one))
        elif said is not None:
            values[one.name] = sum((parsed(about, text, flag_of(one)) for text in said), ())
        elif (text := env.get(about.env, "").strip()) != "":
            values[one.name] = parsed(about, text, about.env)
    return values


def setting_of(one: Field[Any]) -> Setting:
    """The setting that a field carries."""
    found = one.metadata["setting"]
    assert isinstance(found, Setting)
    return found


def flag_of(one: Field[Any]) -> str:
    """The setting's flag on the command line."""
    return setting_of(one).flag or "--" + one.name.replace("_", "-")


def parsed(one: Setting, text: str, origin: str) -> Any:
    """Parse the text of a setting.

    Raises:
        ConfigError: The text is not a valid value of the setting; the error names where the text comes from.
    """
    try:
        return one.parse(text.strip())
    except ValueError as error:
        raise ConfigError(f"{origin} is {text!r}; expected {error}") from None


def as_given(detail: str, fields: Iterable[Field[Any]], flags: Container[str]) -> str:
    """Replace each variable in a text by its flag, if the flag was given."""
    given = {setting_of(one).env: flag_of(one) for one in fields if one.name in flags}
    return re.sub(r"\b[A-Z_]+\b", lambda found: given.get(found[0], found[0]), detail)
