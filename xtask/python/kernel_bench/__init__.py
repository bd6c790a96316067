"""Compares kernels of plugins with other implementations; see `__main__.py`."""
