"""Kernels whose pointers are used in other ways than to be loaded once and stored once, as Triton's own text (`NAME.ttir`). To make them again:
TRITON_DISABLE_LINE_INFO=1 python kernels.py"""
import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, 0.5 * v * (1 + libdevice.tanh(0.79788456 * (v + 0.044715 * v * v * v))), mask=i < n)


@triton.jit
def persist(x, y, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    while p * BLOCK < n:
        i = p * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
        p += tl.num_programs(0)


@triton.jit
def moving(x, y, n, BLOCK: tl.constexpr):
    """Pointers that a `while` carries round."""
    p = y
    k = 0
    while k < n:
        tl.store(p + tl.arange(0, BLOCK), tl.load(x + k))
        p += BLOCK
        k += 1


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    if tl.program_id(0) >= n:
        return
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def add_to(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(y + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    """The output is read after it was written."""
    s = 0.0
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        e = tl.exp(tl.load(x + i, mask=i < n, other=-float("inf")))
        tl.store(y + i, e, mask=i < n)
        s += tl.sum(e, 0)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(y + i, mask=i < n) / s, mask=i < n)


@triton.jit
def locked(x, y, locks, n, BLOCK: tl.constexpr):
    """The first program writes, the others add: only the locks have to be zero before."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    while tl.atomic_cas(locks, 0, 1) == 1:
        pass
    if tl.load(locks + 1) == 0:
        tl.atomic_xchg(locks + 1, 1)
    else:
        v += tl.load(y + i)
    tl.store(y + i, v)
    tl.debug_barrier()
    tl.atomic_xchg(locks, 0)


@triton.jit
def described(x, y, z, n, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, (n, n), (n, 1), (BLOCK, BLOCK))
    b = tl.make_tensor_descriptor(y, (n, n), (n, 1), (BLOCK, BLOCK))
    c = tl.make_tensor_descriptor(z, (n, n), (n, 1), (BLOCK, BLOCK))
    v = a.load((0, 0))
    b.store((0, BLOCK), v)
    c.atomic_add((0, 0), v)


@triton.jit
def assembled(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    w = tl.inline_asm_elementwise("mov.b32 $0, %laneid;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, w)
    w = tl.inline_asm_elementwise("st.f32 [$1], $2;", "=r,l,r", [z + i, v], dtype=tl.float32, is_pure=False, pack=1)
    tl.device_print("w %d", w)


@triton.jit(noinline=True)
def twice(v):
    return v * 2


@triton.jit(noinline=True)
def put(p, v):
    tl.store(p, v)


@triton.jit
def called(x, y, z, n, BLOCK: tl.constexpr):
    tl.store(y, twice(tl.load(x)))
    put(z, twice(tl.load(x)))


@triton.jit
def best(x, y, z, n, BLOCK: tl.constexpr):
    """Regions with values of their own."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    m, j = tl.max(v, 0, return_indices=True)
    tl.store(y + i, tl.cumsum(v, 0) + m)
    tl.store(z, j)


@triton.jit
def either(x, y, z, n, BLOCK: tl.constexpr):
    """Every branch is taken in some run."""
    p = z + 0
    if n > 3:
        p = y
        tl.device_print("y")
    q = tl.where(tl.arange(0, BLOCK) > 3, x + tl.arange(0, BLOCK), z + tl.arange(0, BLOCK))
    tl.store(p + tl.arange(0, BLOCK), tl.load(q))


@triton.jit
def matmul(x, y, z, n, BLOCK: tl.constexpr):
    """Pointers that a `for` carries round beside numbers."""
    i = tl.arange(0, BLOCK)
    px = x + i[:, None] * n + i[None, :]
    py = y + i[:, None] * n + i[None, :]
    pz = z + i[:, None] * n + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        acc = tl.dot(tl.load(px), tl.load(py), acc)
        px += BLOCK
        py += BLOCK * n
        pz += 1
    tl.store(pz, acc)


@triton.jit
def fetched(x, y, n, BLOCK: tl.constexpr):
    """An address that lay in memory."""
    p = tl.load(x).to(tl.pointer_type(tl.float32))
    tl.store(y + tl.arange(0, BLOCK), tl.load(p + tl.arange(0, BLOCK)))


TYPES = {"BLOCK": "constexpr", "n": "i32", "locks": "*i32"}
for kernel in (gelu, persist, moving, total, add_to, softmax, locked, described, assembled, called, best, either, matmul, fetched):
    types = {name: TYPES.get(name, "*fp32") for name in kernel.arg_names}
    if kernel is fetched:
        types["x"] = "*i64"
    target = GPUTarget("cuda", 90, 32)
    compiled = triton.compile(ASTSource(kernel, types, {"BLOCK": 64}), target=target, options={"num_warps": 4})
    pathlib.Path(f"{kernel.__name__}.ttir").write_text(compiled.asm["ttir"])
