"""Tests of the client, against a bare peer that shares no code with the invoker."""
