"""`config_of`: reads settings that a program gives as keyword arguments.

`spelled`: errors that name them in this form.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field
from pathlib import Path
from typing import Any

from invoker.errors import ConfigError, StartupError
from invoker.errors.wording import nearest
from invoker.server.table import TABLE
from invoker.settings import Config, flag_of, setting_of
from invoker.settings.setting import parsed

log = logging.getLogger(__name__)


def config_of(values: Mapping[str, Any], *, env: Mapping[str, str] = os.environ) -> Config:
    """The settings that a program gives; those that it does not give come from the environment.

    Args:
        values: The values by the names of settings, such as ``max_message_bytes``. None stands for a value that is not
            given. Settings that take several values take a list, or a dict where each value has a name.
        env: Environment variables.

    Raises:
        TypeError: There is no such setting.
        ConfigError: A setting cannot have its value, or values contradict each other.
    """
    known = {one.name: one for one in TABLE.settings}
    for refusal in TABLE.refused:
        log.warning("%s", refusal)
    said = {name: value for name, value in values.items() if value is not None}
    for name in said:
        if name not in known:
            meant = nearest(name, known)
            raise TypeError(f"there is no setting {name!r}" + (f"; did you mean {meant!r}?" if meant else ""))
    flags = {name: _flag(known[name], value) for name, value in said.items()}
    with spelled(said):
        return TABLE.read(env, flags)


@contextmanager
def spelled(names: Iterable[str]) -> Iterator[None]:
    """Make errors name settings by their keyword arguments, not by their flags or variables.

    Args:
        names: The names of the settings that the program gives.
    """
    try:
        yield
    except StartupError as error:
        detail = error.detail
        for one in TABLE.settings:
            if one.name in names:
                detail = re.sub(rf"(?<![\w-])({flag_of(one)}|{setting_of(one).env})(?![\w-])", one.name, detail)
        error.detail, error.args = detail, (detail,)
        raise


def _flag(one: Field[Any], value: Any) -> str | bool | Sequence[str]:
    """Convert a value to the form that the command line gives.

    Raises:
        ConfigError: The setting cannot have this value.
    """
    setting = setting_of(one)
    if isinstance(value, bool) and isinstance(one.default, bool):
        return value
    if isinstance(value, Mapping):
        texts = [f"{name}={what}" for name, what in value.items()]
    elif isinstance(value, (str, int, float, Path)):
        texts = [str(value)]
    elif isinstance(value, (list, tuple, set, frozenset)):
        texts = [str(item) for item in value]
    else:
        raise ConfigError(f"{one.name} is {value!r}; expected a str, a number, a bool or a list of str")
    texts = texts if setting.many else [",".join(texts)]
    for text in texts:
        parsed(setting, text, one.name)
    return texts if setting.many else texts[0]
