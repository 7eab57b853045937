"""Tests of typed services at the doors."""
