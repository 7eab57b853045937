"""A module for each protocol, whose `scenarios` gives what is played, by name."""
