"""How kernels are compiled, cached on disk and announced."""
