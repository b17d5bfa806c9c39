"""The subcommands of `reversi`, a file each."""
