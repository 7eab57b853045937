"""The LitServe model for `benchmarks.peer`; it needs a module, since LitServe's worker process imports it by name."""

from typing import Any

from fastapi import Request  # type: ignore[import-not-found]  # installed only in the environment of peers
from litserve import LitAPI  # type: ignore[import-not-found]  # as above


class Api(LitAPI):  # type: ignore[misc]  # as above
    """Returns the nested lists of the request, or the square of its number."""

    def setup(self, device: str) -> None:
        pass

    def decode_request(self, request: Request) -> Any:  # LitServe passes the parsed JSON
        return request

    def predict(self, x: Any) -> Any:
        return x * x if isinstance(x, int) else x

    def encode_response(self, output: Any) -> Any:
        return output
