"""`metadata_pairs`: converts the metadata that a caller gives to the form that gRPC takes."""

from __future__ import annotations

from collections.abc import Mapping


def metadata_pairs(*sources: Mapping[str, str | bytes]) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata of a call; if two sources have the same key, the later one counts.

    Raises:
        ValueError: A key or value is not valid gRPC metadata.
    """
    merged = {key.lower(): value for source in sources for key, value in source.items()}
    for key, value in merged.items():
        _check(key, value)
    return tuple(merged.items())


def _check(key: str, value: str | bytes) -> None:
    if not key or not key.isascii() or not all(sign.isalnum() or sign in "-_." for sign in key):
        raise ValueError(f"metadata key {key!r} may only have letters, digits, '-', '_' and '.'")
    if key.startswith("grpc-"):
        raise ValueError(f"metadata key {key!r} is reserved by gRPC")
    if key.endswith("-bin"):
        if not isinstance(value, bytes):
            raise ValueError(f"metadata {key!r} takes bytes, because its key ends in '-bin'")
    elif not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValueError(f"metadata {key!r} has the value {value!r}; it must be printable ASCII text")
