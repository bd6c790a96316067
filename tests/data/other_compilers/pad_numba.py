"""Circular padding in Numba: PTX for each element type. No GPU is needed."""

from numba import cuda, types


def circ_pad(x, y, count, n0, n1, n2, n3, m1, m2, m3, b0, b1, b2, b3):
    i = cuda.grid(1)
    if i < count:
        s3 = (i % m3 + n3 - b3 % n3) % n3
        s2 = (i // m3 % m2 + n2 - b2 % n2) % n2
        s1 = (i // (m3 * m2) % m1 + n1 - b1 % n1) % n1
        s0 = (i // (m3 * m2 * m1) + n0 - b0 % n0) % n0
        y[i] = x[((s0 * n1 + s1) * n2 + s2) * n3 + s3]


for element in (types.float32, types.float16):
    array = types.Array(element, 1, "C")
    signature = types.void(array, array, *[types.int32] * 12)
    text, _ = cuda.compile_ptx(circ_pad, signature, cc=(8, 0))
    with open(f"circ_pad.{element}.ptx", "w") as file:
        file.write(text)
