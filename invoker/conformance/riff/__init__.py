"""The chapters of riff."""
