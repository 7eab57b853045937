"""Foreign clients against a real server: `make interop`; not part of `make test`, for they are installed first."""
