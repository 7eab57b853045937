"""Tests of `invoker.protocols.riff`."""
