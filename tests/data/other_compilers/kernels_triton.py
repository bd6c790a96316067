"""Kernels as Triton's users have them: one per specialization, one per configuration of the autotuner, one with clusters. No GPU is needed."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def sum_along(x, y, count, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = x + row // stride * count * stride + row % stride
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        k = start + tl.arange(0, BLOCK)
        total += tl.load(first + k * stride, mask=k < count, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(total, 0).to(y.dtype.element_ty))


@triton.autotune([triton.Config({"BLOCK": 512}, num_warps=2), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["count"])
@triton.jit
def clip(x, y, count, least, most, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    value = tl.load(x + i, mask=inside).to(tl.float32)
    tl.store(y + i, tl.minimum(tl.maximum(value, least), most).to(y.dtype.element_ty), mask=inside)


@triton.jit
def affine(x, y, count, factor, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    value = tl.load(x + i, mask=inside).to(tl.float32)
    tl.store(y + i, (factor * value + shift).to(y.dtype.element_ty), mask=inside)


def compiled(kernel, types, constants, capabilities, **options):
    for element in ("fp32", "fp16"):
        pointers = {"x": f"*{element}", "y": f"*{element}"}
        signature = {**pointers, **types, **{name: "constexpr" for name in constants}}
        # In the order of the kernel's parameters.
        signature = {name: signature[name] for name in kernel.arg_names}
        source = ASTSource(kernel, signature, constexprs=constants)
        for capability in capabilities:
            triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


compiled(sum_along, {"count": "i32"}, {"stride": 1, "BLOCK": 128}, (80, 89, 90), num_warps=4)
compiled(sum_along, {"count": "i32", "stride": "i32"}, {"BLOCK": 128}, (80, 89, 90), num_warps=4)
for config in clip.configs:
    types = {"count": "i32", "least": "fp32", "most": "fp32"}
    compiled(clip.fn, types, config.kwargs, (80, 89, 90), num_warps=config.num_warps)
types = {"count": "i32", "factor": "fp32", "shift": "fp32"}
compiled(affine, types, {"BLOCK": 1024}, (90,), num_warps=4, num_ctas=2)
