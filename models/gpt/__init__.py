"""GPT models of games as sequences of tokens (Othello-GPT)."""
