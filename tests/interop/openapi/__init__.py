"""Programs on clients that were generated from /openapi.json, for tests/interop/test_openapi.py."""
