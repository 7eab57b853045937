"""Tests of typed services at the transports."""
