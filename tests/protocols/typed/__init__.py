"""Tests of the typed services."""
