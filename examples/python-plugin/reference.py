"""Calls the implementation in `plugin.py`, without TensorRT."""

import sys
import types

import torch

decorator = lambda name: lambda function: function
sys.modules["tensorrt"] = types.ModuleType("tensorrt")
sys.modules["tensorrt.plugin"] = types.SimpleNamespace(
    register=decorator, autotune=decorator, impl=decorator, Tensor=object, TensorDesc=object, AutoTuneCombination=object
)

import plugin


def swiglu(x):
    x = torch.from_numpy(x).cuda()
    y = torch.empty(*x.shape[:-1], x.shape[-1] // 2, dtype=x.dtype, device="cuda")
    plugin.swiglu_impl(x, 0.5, (y,), torch.cuda.Stream().cuda_stream)
    torch.cuda.synchronize()
    return y
