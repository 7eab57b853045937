"""Tests of the GraphPipe chapters."""
