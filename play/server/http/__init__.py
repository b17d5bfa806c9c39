"""HTTP and WebSockets: routes, endpoints, the server process."""
