"""Host time of an eager call of a plugin through `torch.ops`, beside a C++ extension and an operator in Python that launch the same kernel.

    python3 torch_bench.py FOLDER [--rounds 21] [--count 5000] [--out DIR]

`cargo xtask bench torch --prepare FOLDER` writes FOLDER. Bursts of calls alternate in one process; ratios are computed per round. Writes DIR/torch.json for
`cargo xtask bench publish`. Needs a GPU, PyTorch, nvcc and a C++ compiler; cuda-python for the operator in Python.
"""

import argparse
import ctypes
import importlib
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import bench_run
import cubinder._runtime
import torch
from torch.utils import cpp_extension

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


def timed(call, x, count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call(x)
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / count * 1e6


def contenders(folder):
    """Returns the operators by name, the plugin's first."""
    program = folder / "program"
    program.chmod(0o755)
    cubinder._runtime.program = lambda: program
    cubinder.installed = lambda end: folder / "libcubinder_torch.so"
    plugins = importlib.import_module("cubinder.torch").load(folder / "libadd_one.so")
    work = pathlib.Path(tempfile.mkdtemp())
    (work / "k.cu").write_text(KERNEL)
    major, minor = torch.cuda.get_device_capability()
    subprocess.run(["nvcc", "-cubin", f"-arch=sm_{major}{minor}", "-o", "k.cubin", "k.cu"], cwd=work, check=True)
    assert sys.modules["cubinder.torch"].NATIVE is not None
    found = {"Cubinder": plugins.add_one, "C++": in_cpp(work / "k.cubin")}
    try:
        found["Python"] = in_python(work / "k.cubin")
    except ImportError as error:
        print(f"skipped the operator in Python: {error}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    folder = args.folder.resolve()
    # PyTorch makes its context current.
    x = torch.randn(SHAPE, device="cuda")
    calls = contenders(folder)
    for name, call in calls.items():
        assert torch.equal(call(x), x + 1), name
    times = {name: [] for name in calls}
    for _ in range(args.rounds):
        for name, call in calls.items():
            times[name].append(timed(call, x, args.count))
    columns, row = ["Cubinder, us"], [f"{statistics.median(times['Cubinder']):.3g}"]
    for name in list(calls)[1:]:
        ratios = [a / b for a, b in zip(times["Cubinder"], times[name])]
        columns += [f"{name}, us", f"Cubinder / {name}, mean", "95 % bound"]
        row += [f"{statistics.median(times[name]):.3g}", f"{statistics.mean(ratios):.3f}", f"{bench_run.upper_bound(ratios):.3f}"]
    print(json.dumps(dict(zip(columns, row))), flush=True)
    table = {
        "title": "Eager call",
        "text": (
            f"Host time of one call through `torch.ops` with one tensor of {SHAPE[0]}x{SHAPE[1]} floats, including the allocation of the result and the launch. {args.rounds} rounds of bursts of {args.count} calls. "
            "The C++ operator is registered with `TORCH_LIBRARY`, the one in Python with `torch.library.custom_op`; it launches with cuda-python."
        ),
        "columns": columns,
        "rows": [row],
    }
    machine = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Python {platform.python_version()}"
    command = bench_run.command("torch", rounds=args.rounds, count=args.count)
    versions = json.loads((folder / "torch.json").read_text())["versions"]
    bench_run.write(bench_run.report("torch", command, machine, versions, [table]), args.out)


if __name__ == "__main__":
    main()
