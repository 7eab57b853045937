"""The command line: serving, calling, talking, explaining."""
