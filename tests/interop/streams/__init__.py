"""Foreign clients that stream by HTTP: httpx, fetch in Node, curl, EventSource in Chromium, and bare sockets."""
