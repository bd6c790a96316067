"""Circular padding in Triton: a cubin for each element type and architecture. No GPU is needed."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def circ_pad(x, y, count, n0, n1, n2, n3, m1, m2, m3, b0, b1, b2, b3, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    s3 = (i % m3 + n3 - b3 % n3) % n3
    s2 = (i // m3 % m2 + n2 - b2 % n2) % n2
    s1 = (i // (m3 * m2) % m1 + n1 - b1 % n1) % n1
    s0 = (i // (m3 * m2 * m1) + n0 - b0 % n0) % n0
    value = tl.load(x + ((s0 * n1 + s1) * n2 + s2) * n3 + s3, mask=inside)
    tl.store(y + i, value, mask=inside)


integers = {name: "i32" for name in "count n0 n1 n2 n3 m1 m2 m3 b0 b1 b2 b3".split()}
for element in ("fp32", "fp16"):
    signature = {"x": f"*{element}", "y": f"*{element}", **integers, "BLOCK": "constexpr"}
    source = ASTSource(circ_pad, signature, constexprs={"BLOCK": 256})
    for capability in (80, 89, 90):
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
        with open(f"circ_pad.triton.{element}.sm_{capability}.cubin", "wb") as file:
            file.write(compiled.asm["cubin"])
