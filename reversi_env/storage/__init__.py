"""Files that are written atomically, checked by checksums, and kept in the user's cache folder."""
