"""Tests of the GraphPipe front."""
