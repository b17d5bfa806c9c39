"""What a person meets: the `reversi` command."""
