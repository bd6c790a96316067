"""A kernel of Numba's: each array is passed in parts."""
from numba import cuda, float32, int32


def turn(x, y, shift):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < y.size:
        y[i] = x[(i + shift) % x.size]


ptx, _ = cuda.compile_ptx(turn, (float32[::1], float32[::1], int32), cc=(8, 0))
print(ptx)
