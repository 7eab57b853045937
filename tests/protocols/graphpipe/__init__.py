"""Tests of the GraphPipe handler."""
