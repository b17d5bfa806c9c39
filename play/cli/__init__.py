"""The command line: `app` is the table of all commands, and each folder has one group of them."""
