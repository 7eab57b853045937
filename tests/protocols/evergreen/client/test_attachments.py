"""Tests of files as messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoker.client import attachment


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.txt", "text/plain"),
        ("cat.png", "image/png"),
        ("a.txt.gz", "application/gzip"),
        ("what", "application/octet-stream"),
    ],
)
def test_type_is_guessed_by_the_name(tmp_path: Path, name: str, media_type: str) -> None:
    """Which travels along; a type that is given wins."""
    (tmp_path / name).write_bytes(b"abc")
    made = attachment(tmp_path / name, role="user")
    assert (made.payload, made.media_type) == (b"abc", media_type)
    assert dict(made.headers) == {"original-file-name": name, "role": "user"}
    assert attachment(tmp_path / name, media_type="a/b").media_type == "a/b"
