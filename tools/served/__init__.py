"""The two catalogues that `python -m tools gates` serves to count calls."""
