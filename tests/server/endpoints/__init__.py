"""Tests of `invoker.server.endpoints`."""
