"""Tests of `invoker.connect`."""
