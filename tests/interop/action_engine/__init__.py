"""Programs that run with the package `action-engine` in an environment of its own."""
