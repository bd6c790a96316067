"""Measures an eager call of a plugin through `torch.ops`, beside a C++ extension and an operator in Python that launch
the same kernel.

    torch_bench.py LIBRARY OUT

LIBRARY has the plugin `mine::add_one` of the README. Needs a GPU, nvcc and a C++ compiler."""

import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench_run
import cubinder.torch
import torch
from torch.utils import cpp_extension

ROUNDS, CALLS = 21, 5000
SHAPE = (4, 256)

KERNEL = """
extern "C" __global__ void add_one(const float* x, float* y, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = x[i] + 1.0f;
}
"""

EXTENSION = """
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <torch/extension.h>

static CUfunction function;

void load(std::string const& path)
{
    CUmodule module;
    TORCH_CHECK(cuModuleLoad(&module, path.c_str()) == CUDA_SUCCESS);
    TORCH_CHECK(cuModuleGetFunction(&function, module, "add_one") == CUDA_SUCCESS);
}

at::Tensor add_one(at::Tensor const& input)
{
    at::Tensor const x = input.contiguous();
    at::Tensor y = at::empty(x.sizes(), x.options());
    void const* from = x.const_data_ptr();
    void* to = y.mutable_data_ptr();
    long long count = x.numel();
    void* arguments[] = {&from, &to, &count};
    TORCH_CHECK(cuLaunchKernel(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, c10::cuda::getCurrentCUDAStream(),
        arguments, nullptr) == CUDA_SUCCESS);
    return y;
}

TORCH_LIBRARY(rival_cpp, m)
{
    m.def("add_one(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(rival_cpp, CUDA, m)
{
    m.impl("add_one", &add_one);
}
"""


def in_cpp(cubin):
    functions = cpp_extension.load_inline("rival", EXTENSION, functions=["load"], extra_ldflags=["-lcuda"], with_cuda=True)
    functions.load(str(cubin))
    return torch.ops.rival_cpp.add_one


def in_python(cubin):
    """An operator in Python that calls cuda-python, as its documentation shows."""
    from cuda.bindings import driver

    def checked(result):
        assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
        return result[1] if len(result) == 2 else result[1:]

    module = checked(driver.cuModuleLoad(str(cubin).encode()))
    function = checked(driver.cuModuleGetFunction(module, b"add_one"))

    @torch.library.custom_op("rival_python::add_one", mutates_args=())
    def add_one(x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        count = x.numel()
        values, types = (x.data_ptr(), y.data_ptr(), count), (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong)
        stream = torch.cuda.current_stream().cuda_stream
        checked(driver.cuLaunchKernel(function, (count + 255) // 256, 1, 1, 256, 1, 1, 0, stream, (values, types), 0))
        return y

    return torch.ops.rival_python.add_one


def timed(call, x):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call(x)
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / CALLS * 1e6


def main(library, out):
    x = torch.randn(SHAPE, device="cuda")
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "k.cu").write_text(KERNEL)
    major, minor = torch.cuda.get_device_capability()
    subprocess.run(["nvcc", "-cubin", f"-arch=sm_{major}{minor}", "-o", "k.cubin", "k.cu"], cwd=folder, check=True)
    contenders = {"Cubinder": cubinder.torch.load(library).add_one, "C++ extension": in_cpp(folder / "k.cubin")}
    try:
        contenders["Python and cuda-python"] = in_python(folder / "k.cubin")
    except ImportError as error:
        print(f"skipped cuda-python: {error}", flush=True)
    for name, call in contenders.items():
        assert torch.equal(call(x), x + 1), name
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            times[name].append(timed(call, x))
    ours = statistics.median(times["Cubinder"])
    rows = []
    for name, found in times.items():
        ratio = [a / b for a, b in zip(times["Cubinder"], found)]
        bound = bench_run.upper_bound(ratio)
        rows.append([name, f"{statistics.median(found):.2f}", f"{ours / statistics.median(found):.3f}", f"{bound:.3f}"])
        print(*rows[-1], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
