"""What the plugins of this folder are to compute."""

import os

import numpy as np


def planted(x, fault):
    return x * 2


def doubled(x):
    return {"y": x * 2}


def scale(x, factor):
    """In single precision, rounded to the type: as the kernel does it."""
    return (x.astype(np.float32) * np.float32(factor)).astype(x.dtype)


def short(x, fault):
    return x[1:] * 2


def doubled_whatever(x, factor):
    return x * 2 + 1


def positive(x, fault):
    return x[x > 0]


def raises(x, fault):
    raise ValueError("nobody knows")


def only_the_size(x, fault):
    return {"size": np.int32((x > 0).sum())}


def misnamed(x, fault):
    return {"z": x}


def nothing(x, fault):
    return {}


def endless(x, fault):
    with open(os.environ["ENDLESS_PID"], "w") as file:
        file.write(str(os.getpid()))
    while True:
        pass


def asks(x, fault):
    try:
        input()
    except EOFError:
        return x * 2
    raise AssertionError("it got an answer")


def sized(x, fault):
    kept = x[x > 0]
    return kept, np.int32(len(kept))


def scale_twice(x, factor):
    return scale(x, factor) * 2
