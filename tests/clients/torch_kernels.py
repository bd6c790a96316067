"""Checks the kernels of `libcubinder_torch.so` on tensors of the CPU, with the stand-in driver.

    torch_kernels.py LIBRARY

LIBRARY has the plugins of `tests/data/torch`. The stand-in driver runs its kernel if the input is in memory
that the driver allocated."""

import ctypes
import sys
import threading

import cubinder._runtime as runtime
import cubinder.torch
import torch

native, driver = runtime.Library(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
operators = torch.library.Library("native", "FRAGMENT")


def implement(plugin, schema, attributes, tensors=1, outputs=1, key="CPU"):
    name = operators.define(schema)
    arguments = (native, plugin, attributes, tensors, outputs, "native", name, key)
    return cubinder.torch.NATIVE.implement(*arguments) and getattr(torch.ops.native, name)


def device_tensor(values):
    """Returns a tensor in memory of the stand-in driver."""
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * values.numel())) == 0
    memory = (ctypes.c_float * values.numel()).from_address(address.value)
    return torch.frombuffer(memory, dtype=torch.float32).copy_(values.flatten()).view(values.shape)


def message(call, *args, **attributes):
    try:
        call(*args, **attributes)
    except RuntimeError as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")


ATTRIBUTES = [("factor", runtime.FLOAT32), ("times", runtime.INT64), ("negate", runtime.INT8)]
scaled = implement("test::scaled@1", "scaled(Tensor x, *, float factor, int times=1, bool negate=False) -> Tensor", ATTRIBUTES)
x = device_tensor(torch.arange(24.0).reshape(2, 3, 4))
for _ in range(2):
    for shape in ((2, 3, 4), (24,), (6, 4)):
        y = scaled(x.view(shape), factor=0.5)
        assert y.shape == shape and torch.equal(y, x.view(shape) / 2), y
assert torch.equal(scaled(x, factor=0.5, times=6, negate=True), x * -3)
assert torch.equal(scaled(x, factor=0.5, times=6), x * 3)
y, z = scaled(x, factor=0.0), scaled(x, factor=-0.0)
assert not torch.signbit(y).any() and torch.signbit(z).all(), "0.0 and -0.0 are two attributes"
y = scaled(x.transpose(0, 2), factor=1.0)
assert y.shape == (4, 3, 2) and y.is_contiguous(), "a copy that is contiguous, in other memory"
assert scaled(torch.empty(0, 3), factor=1.0).shape == (0, 3)
for step in range(600):
    assert torch.equal(scaled(x, factor=float(step)), x * step), "operators that are forgotten"

text = message(scaled, x, factor=1.0, times=0)
assert "test::scaled" in text and "`times` must be positive" in text, text
text = message(scaled, torch.ones(1, 1, 1, 1, 2), factor=1.0)
assert text == "test::scaled: input `x` has rank 5, expected 0 to 4", text
assert "no variant" in message(scaled, x.half(), factor=1.0)
assert "plugins have no type for torch.complex64" in message(scaled, x.to(torch.complex64), factor=1.0)
text = message(scaled, x, factor=1e300)
assert "the attribute `factor` is 1e300, beyond the range of single precision" in text, text
assert "`times`" in message(scaled, x, factor=1.0, times=1 << 40)
leaf = x.clone().requires_grad_()
text = message(scaled, leaf, factor=1.0)
assert text == "test::scaled has no gradient: call it under `torch.no_grad()`, or detach its inputs", text
with torch.no_grad():
    assert scaled(leaf, factor=1.0).shape == x.shape
# It allocates no more than for a small shape: `marks` has a byte for each element.
scaled(torch.empty(1 << 26), factor=1.0)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
    scaled(x, factor=1.0)
allocated = sum(event.cpu_memory_usage for event in profile.events() if event.cpu_memory_usage > 0)
assert allocated < 1 << 16, allocated
text = message(scaled, torch.empty(1).expand(1 << 20, 1 << 28), factor=1.0)
assert "`aoti_torch_empty_strided` failed: " in text and "you tried to allocate" in text, text
mixed = implement("test::scaled@1", "mixed(Tensor x, Tensor y) -> Tensor", [], tensors=2, key="Meta")
text = message(mixed, x, torch.empty(3, device="meta"))
assert text == "test::scaled: the inputs are on cpu and the device type 14; move them to one device", text
missing = implement("test::missing@1", "missing(Tensor x) -> Tensor", [])
assert "this library has no plugin `test::missing@1`" in message(missing, x)
two = implement("test::scaled@1", "two(Tensor x, *, float factor) -> (Tensor, Tensor)", ATTRIBUTES[:1], outputs=2)
assert "2 outputs, but the plugin has 1" in message(two, x, factor=1.0)

wrong = []


def call_often(factor):
    for _ in range(300):
        if not torch.equal(scaled(x, factor=factor), x * factor):
            wrong.append(factor)


threads = [threading.Thread(target=call_often, args=(float(factor),)) for factor in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong

ops = cubinder.torch.load(sys.argv[1])
of_cuda = [line for line in torch._C._dispatch_dump("test::scaled").splitlines() if line.startswith("CUDA:")]
assert len(of_cuda) == 1 and "_runtime.py" in of_cuda[0], "a kernel without Python"
in_python = [line for line in torch._C._dispatch_dump("cubinder_plugins::exact").splitlines() if line.startswith("CUDA:")]
assert len(in_python) == 1 and "_runtime.py" not in in_python[0], "the default of `factor` has more precision than ONNX"
assert ops.exact(torch.empty(3, device="meta")).shape == (3,)
made = 5
while implement("test::scaled@1", f"scaled{made}(Tensor x, *, float factor) -> Tensor", ATTRIBUTES[:1]):
    made += 1
assert made == 256, made
print("all checks passed")
