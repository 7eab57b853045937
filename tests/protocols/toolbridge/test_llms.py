"""Llms: which language models a request may choose (T-137 to T-139)."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.errors import ConfigError, Status
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.llms import Llm, Llms

URL = "https://models.example.org/v1"
LLMS = Llms(
    (f"big={URL}/", "other=http://127.0.0.1:9/v1", "scripted=functions.agents:scripted"), ("gpt-5-mini", "gpt-5*")
)


def refusal(config: dict[str, Any], llms: Llms = LLMS) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        llms.choose(config)
    return caught.value


def test_T137_the_first_is_the_default() -> None:
    assert LLMS.choose({}) == Llm("big", URL, "gpt-5-mini", {})


def test_T137_a_provider_is_named() -> None:
    assert LLMS.choose({"provider": "scripted", "temperature": 1}) == Llm(
        "scripted", "functions.agents:scripted", "scripted", {"temperature": 1.0}
    )


def test_T137_a_base_url_is_one_of_those_listed() -> None:
    assert LLMS.choose({"base_url": "http://127.0.0.1:9/v1/", "model": "gpt-5"}).provider == "other"
    assert LLMS.choose({"api_base": URL, "provider": "big", "model": "gpt-5"}).provider == "big"


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example.org/v1",
        "https://models.example.org/v1/chat",
        "https://models.example.org",
        "https://models.example.org.evil.example/v1",
        "https://models.example.org@evil.example/v1",
        "https://user:pw@models.example.org/v1",
        "https://models.example.org:8443/v1",
        "https://models.example.org/v1?x=1",
        "https://models.example.org/v1#x",
        "https://models.example.org/v1/../admin",
        "HTTPS://MODELS.EXAMPLE.ORG/v1",
        "https://models.example.org\\@evil.example/v1",
        " https://models.example.org/v1",
        "http://169.254.169.254/latest",
        "http://0x7f.1:9/v1",
        "http://localhost:9/v1",
        "file:///etc/passwd",
        "unix:/run/x",
        "/",
    ],
)
def test_T137_no_other_base_url_is_reached(url: str) -> None:
    """Only the very text that the operator has listed is taken."""
    error = refusal({"base_url": url, "model": "gpt-5", "api_key": "sk-secret"})
    assert (error.status, error.details["code"]) == (Status.PERMISSION_DENIED, "llm_forbidden")
    assert url.strip("/ ") == "" or url.strip() not in str(error)
    assert "sk-secret" not in str(error) + str(error.details)


@pytest.mark.parametrize(
    "config",
    [
        {"provider": "os:system"},
        {"provider": "functions.agents:scripted"},
        {"provider": "openai"},
        {"entrypoint": "os:system"},
        {"function": "os:system"},
        {"module": "os"},
        {"class": "subprocess.Popen"},
        {"provider": "big", "base_url": "http://127.0.0.1:9/v1"},
        {"provider": "scripted", "base_url": "functions.agents:scripted"},
        {"model": "claude"},
        {"model": "anthropic/gpt-5"},
        {"model": "gpt-5\r\nx: y"},
        {"model": "gpt-5" + "x" * 500},
    ],
)
def test_T137_what_the_operator_has_not_allowed_is_refused(config: dict[str, Any]) -> None:
    assert refusal(config).status is Status.PERMISSION_DENIED


def test_T138_without_any_model_there_is_no_agent() -> None:
    assert refusal({}, Llms()).status is Status.FAILED_PRECONDITION
    assert refusal({}, Llms((f"big={URL}",))).status is Status.FAILED_PRECONDITION
    assert refusal({}, Llms((f"big={URL}",), ("gpt-*",))).status is Status.FAILED_PRECONDITION


def test_T139_a_key_is_accepted_and_forgotten() -> None:
    assert "sk-secret" not in repr(LLMS.choose({"api_key": "sk-secret"}))


@pytest.mark.parametrize(
    "config",
    [{"temperature": "hot"}, {"temperature": 3}, {"temperature": float("nan")}, {"max_tokens": 0}, {"max_tokens": True},
     {"provider": 1}, {"headers": {"x": "y"}}, {"timeout": 1}],
)  # fmt: skip
def test_options_that_are_wrong_are_named(config: dict[str, Any]) -> None:
    error = refusal(config)
    assert error.status is Status.INVALID_ARGUMENT
    assert next(iter(config)) in error.details["field"]


@pytest.mark.parametrize(
    "entry",
    ["x", "=https://h/v1", "a=", "a=nothing", "a b=m:f", "a=https://user:pw@h/v1", "a=https://h/v1?key=pw", "a=ftp://h/v1",
     "a=https:///v1", "a=http://[::1/v1"],
)  # fmt: skip
def test_a_wrong_list_of_models_stops_the_start(entry: str) -> None:
    with pytest.raises(ConfigError, match="INVOKER_LLM") as caught:
        Llms((entry,))
    assert "user:pw" not in str(caught.value)


def test_two_models_of_one_name_stop_the_start() -> None:
    with pytest.raises(ConfigError):
        Llms(("a=m:f", "a=m:g"))
