"""Measurements; ``make bench`` runs them and writes docs/explanation/figures.md's table anew."""
