"""Tests of the JSON schemas of annotations."""
