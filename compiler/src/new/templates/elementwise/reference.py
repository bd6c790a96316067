"""Reference for @NAME@: `cubinder test tests/@NAME@.toml` compares the kernels' outputs with it on a GPU."""


def reference(x, factor):
    return x * factor
