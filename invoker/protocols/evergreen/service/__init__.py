"""How Evergreen and action-engine are attached to the transports."""

__all__: list[str] = []
