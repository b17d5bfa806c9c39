"""Players that choose moves. The alpha-beta engine and its evaluators will stand here; now: the simplest baselines."""
