"""out = alpha * x + y, compiled as Triton compiles it for calls whose arguments are multiples of 16, and for others."""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def axpy(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * alpha + y, mask=mask)


for ty in ("fp32", "fp16"):
    for arch in (80, 90):
        for multiple in (16, None):
            names = ("x_ptr", "y_ptr", "out_ptr")
            signature = {name: "*" + ty for name in names} | {"n": "i32", "alpha": "fp32", "BLOCK": "constexpr"}
            attrs = {(at,): [["tt.divisibility", multiple]] for at in range(4)} if multiple else {}
            source = ASTSource(fn=axpy, signature=signature, constexprs={"BLOCK": 1024}, attrs=attrs)
            triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4})
