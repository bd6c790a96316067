import numpy as np


def cross(a, b):
    return np.cross(a, b)
