"""What @NAME@ is to compute; `cubinder test tests/@NAME@.toml` holds its kernels against it on a GPU."""


def reference(x, factor):
    return x * factor
