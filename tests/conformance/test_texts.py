"""How reports show bytes."""

from __future__ import annotations

from invoker_conformance.texts import preview


def test_long_payloads_are_cut() -> None:
    """With their size."""
    assert preview(b"x" * 100) == f"'{'x' * 48}'... (100 bytes)"
    assert preview(b"\x00\xff") == "'\\x00\\xff'"
