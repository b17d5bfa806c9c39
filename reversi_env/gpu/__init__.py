"""The kernels on a GPU. Nothing here is imported before somebody asks for ``device="cuda"``."""
