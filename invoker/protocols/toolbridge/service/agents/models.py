"""The language models of agents, as engines of DSPy's LM: an OpenAI-compatible endpoint, and a function.

An engine makes one answer for each request, and raises errors of ``dspy.lm15``. No routing of DSPy is used: it would
choose a provider by the text of the model, which a caller gives.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from dspy import lm15

log = logging.getLogger(__name__)

MOST_CHARACTERS: Final = 65_536
"""The most characters of an answer. DSPy reads it on the event loop, and needs up to 4 µs for a character of what it
has to repair."""

_THREADS: Final = 32
_NO_USAGE: Final = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


class Nowhere:
    """The engine for blocking calls, which DSPy requires, and which agents never make."""

    def complete(self, request: Any) -> Any:
        """Raise ConfigurationError, since agents never block for an answer."""
        raise lm15.ConfigurationError(f"agents never block for an answer of {request.model}")


class Endpoint:
    """An OpenAI-compatible endpoint (T-145).

    It follows no redirects. The texts of its errors are dropped, since some endpoints repeat the API key in them.

    Args:
        url: Base URL, such as ``https://host/v1``.
        key: API key; may be empty.
        timeout_s: How long an answer may take.
        delays_s: Waits before each new try after a connection error, 429 or 5xx.
        tell: Called after each try with whether an answer came.
    """

    def __init__(
        self, url: str, key: str, timeout_s: float, delays_s: tuple[float, ...], tell: Callable[[bool], None]
    ) -> None:
        config = lm15.RouterConfig(
            api_keys={"openai-chat": key or "none"},
            base_urls={"openai-chat": url},
            timeouts=lm15.Timeouts(connect=min(10.0, timeout_s), read=timeout_s, write=timeout_s, pool=timeout_s),
            env={},
        )
        self._router = lm15.AsyncLMRouter(config)
        self._provider = self._router.lm("openai-chat:any")
        self._timeout_s = timeout_s
        self._delays_s = delays_s
        self._tell = tell

    async def complete(self, request: Any) -> Any:
        """Ask the endpoint, and retry after temporary errors."""
        for delay_s in (*self._delays_s, None):
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._provider.complete(request)
                if not response.message.text:  # such as the answer of a redirect
                    raise lm15.ProviderError("no text")
            except TimeoutError:
                error: Exception = lm15.TimeoutError(f"no answer within {self._timeout_s:g} s")
            except lm15.TransportError:
                error = lm15.TransportError("the connection failed")
            except (lm15.LM15Error, TypeError, ValueError, KeyError, AttributeError) as met:  # the body may be anything
                status = getattr(met, "status", None)
                kind = type(met) if isinstance(met, lm15.ProviderError) else lm15.ProviderError
                error = kind(f"status {status}" if status else "it gives no answer of a chat", status=status)
                if not (status == 429 or (status or 0) >= 500):
                    self._tell(False)
                    raise error from None
            else:
                self._tell(True)
                _check_size(response.message.text)
                return response
            if delay_s is None:
                self._tell(False)
                raise error from None
            await asyncio.sleep(delay_s)
        raise AssertionError("the last try returns or raises")

    async def aclose(self) -> None:
        """Close the connections to the endpoint."""
        await self._router.aclose()


class FunctionModel:
    """A function that takes messages, each a dict with ``role`` and ``content``, and returns text.

    Args:
        function: The function of the operator; a sync one runs in a thread.
        tell: Called after each try with whether an answer came.
    """

    def __init__(self, function: Callable[[list[dict[str, str]]], Any], tell: Callable[[bool], None]) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)
        self._threads = None if self._is_async else ThreadPoolExecutor(_THREADS, "llm")
        self._tell = tell

    async def complete(self, request: Any) -> Any:
        """Call the function with the messages; raises ProviderError if it raises or gives no text."""
        messages = [] if request.system is None else [{"role": "system", "content": _text(request.system)}]
        messages += [{"role": one.role, "content": one.text or ""} for one in request.messages]
        try:
            if self._threads is None:
                text = await self._function(messages)
            else:
                text = await asyncio.get_running_loop().run_in_executor(self._threads, self._function, messages)
        except Exception as error:
            self._tell(False)
            raise lm15.ProviderError(f"the function raised {type(error).__name__}") from error
        if not isinstance(text, str):
            raise lm15.ProviderError(f"the function returned a {type(text).__name__}; expected text")
        self._tell(True)
        _check_size(text)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(text or " "),
            finish_reason="stop",
            usage=lm15.Usage(**_NO_USAGE),
        )

    async def aclose(self) -> None:
        """Drop calls that wait for a thread, and accept no more."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _check_size(text: str) -> None:
    """Refuse an answer that would block the process while it is read."""
    if len(text) > MOST_CHARACTERS:
        why = f"its answer has {len(text)} characters and exceeds the limit of {MOST_CHARACTERS}"
        log.warning("a language model has failed: %s", why)
        raise lm15.ProviderError(why)


def _text(system: Any) -> str:
    return system if isinstance(system, str) else "".join(part.text for part in system)
