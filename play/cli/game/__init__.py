"""Commands that play: `play`, `gtp`, `nboard`, `serve`, `connect`."""
