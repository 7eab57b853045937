"""A module that test_lazy.py finds."""


def found_later() -> None:
    """It does nothing."""
