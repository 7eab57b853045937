"""`Llms`: the language models that the operator allows for agents, and the choice of one by a request (T-137 to T-139).

A request can only name one of these models, so it cannot make the server run other code or connect to other addresses.
API keys come from the environment of the server; a key in a request is neither used nor kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from invoker.errors import ConfigError, Status
from invoker.protocols.toolbridge.errors import BridgeError, Kind

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}").fullmatch
_OPTIONS: Final = {"temperature": (float, 0.0, 2.0), "top_p": (float, 0.0, 1.0), "max_tokens": (int, 1, 1_000_000)}
_KEYS: Final = frozenset(("provider", "model", "base_url", "api_base", "api_key", *_OPTIONS))
_FOREIGN: Final = frozenset(["entrypoint", "function", "module", "class", "engine", "callable", "command", "path"])
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}").fullmatch


class Llm(msgspec.Struct, frozen=True):
    """The model that a request chose.

    Attributes:
        provider: The name that the operator gave the model.
        where: The entrypoint or the base URL, from the operator's entry.
        model: The name of the model at an endpoint; for a function, the provider's name.
        options: Temperature and similar options.
    """

    provider: str
    where: str
    model: str
    options: dict[str, Any]

    @property
    def is_url(self) -> bool:
        """Whether the model is an endpoint; otherwise it is a function."""
        return _is_url(self.where)


class Llms:
    """The models that the operator allows.

    Args:
        providers: Entries ``name=https://host/v1`` or ``name=module:function``; the first is the default.
        models: Patterns of the model names that requests may choose at endpoints, the first of which is the default;
            none: any name.

    Attributes:
        functions: The entrypoints, by name.
        urls: The base URLs, by name.

    Raises:
        ConfigError: An entry is malformed.
    """

    def __init__(self, providers: Sequence[str] = (), models: Sequence[str] = ()) -> None:
        self._models = tuple(models)
        self._all: dict[str, str] = {}
        for entry in providers:
            name, equals, where = (one.strip() for one in entry.partition("="))
            if not equals or _NAME(name) is None or name in self._all or not _is_place(where):
                raise ConfigError(
                    f"INVOKER_LLM: {_shown(entry)!r} is not understood; expected a name that is there once, '=', and "
                    "https://HOST/PATH without user, query or fragment, or MODULE:FUNCTION"
                )
            self._all[name] = where.rstrip("/") if _is_url(where) else where
        self.functions = {name: where for name, where in self._all.items() if not _is_url(where)}
        self.urls = {name: where for name, where in self._all.items() if _is_url(where)}

    def choose(self, config: Mapping[str, Any]) -> Llm:
        """Return the model that an ``llm_config`` chooses.

        Raises:
            BridgeError: The model is not allowed, there is none, or an option is wrong.
        """
        for key in config:
            if key in _FOREIGN:
                raise forbidden(f"llm_config.{key} is refused: a model is named by its provider", f"llm_config.{key}")
            if key not in _KEYS:
                raise _wrong(key[:64], f"there is no option llm_config.{key[:64]!a}")
        provider, model = _text(config, "provider"), _text(config, "model")
        url = _text(config, "base_url") or _text(config, "api_base")
        if not self._all:
            raise _none("no language model is configured: the operator names those of agents in INVOKER_LLM")
        name = self._named(provider, url)
        options = {key: _option(key, config[key]) for key in _OPTIONS if key in config}
        if name in self.functions:
            return Llm(name, self.functions[name], name, options)
        return Llm(name, self.urls[name], self._model(model), options)

    def _named(self, provider: str, url: str) -> str:
        if provider and provider not in self._all:
            raise forbidden("llm_config.provider is not one that this server allows", "llm_config.provider")
        if url:
            found = [name for name, where in self.urls.items() if where == url.rstrip("/")]
            if not found or (provider and provider not in found):
                raise forbidden("llm_config.base_url is not one that this server allows", "llm_config.base_url")
            return provider or found[0]
        return provider or next(iter(self._all))

    def _model(self, model: str) -> str:
        if not model:
            first = self._models[0] if self._models else ""
            if not first or any(char in first for char in "*?["):
                raise _none("llm_config names no model, and the operator has set no default in INVOKER_LLM_MODELS")
            return first
        if _MODEL(model) is None or (self._models and not any(fnmatchcase(model, one) for one in self._models)):
            raise forbidden("llm_config.model is not one that this server allows", "llm_config.model")
        return model


def forbidden(text: str, field: str) -> BridgeError:
    """The error for a choice that the operator does not allow; it does not quote the caller's text."""
    error = BridgeError(Kind.VALIDATION, text, code="llm_forbidden", field=field)
    error.status = Status.PERMISSION_DENIED
    return error


def _none(text: str) -> BridgeError:
    error = BridgeError(Kind.VALIDATION, text, code="llm_missing", field="config.llm_config")
    error.status = Status.FAILED_PRECONDITION
    return error


def _wrong(key: str, text: str) -> BridgeError:
    return BridgeError(Kind.VALIDATION, text, code="llm_config", field=f"llm_config.{key}")


def _text(config: Mapping[str, Any], key: str) -> str:
    value = config.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(key, f"llm_config.{key} is a {type(value).__name__}; expected text")
    return value


def _option(key: str, value: Any) -> Any:
    kind, least, most = _OPTIONS[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise _wrong(key, f"llm_config.{key} is not a number from {least} to {most}")
    return kind(value)


def _is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


def _is_place(where: str) -> bool:
    if not _is_url(where):
        module, _, name = where.partition(":")
        return bool(module and name) and "//" not in where
    try:
        parts = urlsplit(where)
        return bool(parts.hostname) and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        return False


def _shown(entry: str) -> str:
    """An entry for the text of an error, without parts that may contain a password."""
    name, _, where = entry.partition("=")
    return f"{name}=..." if "@" in where else entry
