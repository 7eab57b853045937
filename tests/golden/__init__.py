"""Golden traces: what the sessions of each protocol are given, and which steps they answer with, as text."""
