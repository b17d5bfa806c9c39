"""Games as token sequences, and labels for every ply."""
