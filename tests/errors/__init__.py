"""Tests of `invoker.errors`."""
