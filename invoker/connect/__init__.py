"""The parts that clients of all protocols share: connections, TLS, failures, and a portal for code without a loop."""

__all__: list[str] = []
