"""Where protocols are attached to doors."""

__all__: list[str] = []
