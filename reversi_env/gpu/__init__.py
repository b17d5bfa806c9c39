"""The kernels on a GPU. These modules are imported only for ``device="cuda"``."""
