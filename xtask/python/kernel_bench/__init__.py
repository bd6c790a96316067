"""Kernels of plugins side by side with what others make of the same operators; see `__main__.py`."""
