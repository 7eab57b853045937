"""Tests of `invoker.protocols.riff.service`."""
