"""The page at ``/`` for a browser, and the live numbers that it shows."""
