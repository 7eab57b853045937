"""Programs for the GraphPipe clients of others; those in Python run in an environment of their own."""
