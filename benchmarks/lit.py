"""The model of LitServe in `benchmarks.peer`; a file of its own, since its worker process imports it by name."""

from typing import Any

from fastapi import Request  # type: ignore[import-not-found]  # it is installed where it runs
from litserve import LitAPI  # type: ignore[import-not-found]  # as above


class Api(LitAPI):  # type: ignore[misc]  # as above
    """Gives back the nested lists that came, or the square of a number."""

    def setup(self, device: str) -> None:
        pass

    def decode_request(self, request: Request) -> Any:  # LitServe passes what the JSON means
        return request

    def predict(self, x: Any) -> Any:
        return x * x if isinstance(x, int) else x

    def encode_response(self, output: Any) -> Any:
        return output
