import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, scale, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * columns
    y += tl.program_id(0).to(tl.int64) * columns
    # The running maximum, and the sum of exp(scale * (x - maximum)).
    largest = -3.4e38
    total = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        part = tl.load(x + i, mask=i < columns, other=float("-inf")).to(tl.float32)
        before = largest
        largest = tl.maximum(before, tl.max(part, 0))
        total = total * tl.exp(scale * (before - largest)) + tl.sum(tl.exp(scale * (part - largest)), 0)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        part = tl.load(x + i, mask=i < columns).to(tl.float32)
        tl.store(y + i, tl.exp(scale * (part - largest)) / total, mask=i < columns)


types = {"x": "*fp16", "y": "*fp16", "columns": "i32", "scale": "fp32", "BLOCK": "constexpr"}
source = ASTSource(softmax, types, {"BLOCK": 1024})
for capability in (80, 90):
    kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
    assert kernel.metadata.shared <= 1024    # `shared_bytes` of the manifest
    for kind in "cubin", "ptx", "ttir":
        code = kernel.asm[kind]
        path = pathlib.Path(f"build/softmax.sm_{capability}.{kind}")
        path.write_bytes(code if isinstance(code, bytes) else code.encode())
