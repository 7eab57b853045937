"""Tests of the Evergreen chapters of the conformance suite."""
