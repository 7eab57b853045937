"""riff's place at the doors."""
