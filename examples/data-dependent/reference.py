import numpy as np


def above(x):
    y = x[x > 0.5]
    return {"y": y, "count": np.int32(len(y))}
