"""The tool bridge: sessions, tools, variables and agents for a host program. Pure: frames in, steps out."""

__all__: list[str] = []
