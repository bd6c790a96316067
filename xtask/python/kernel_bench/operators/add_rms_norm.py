"""The sum of two tensors, and its normalization."""

import torch

from . import rms_norm
from .common import size

TOLERANCE = {**rms_norm.TOLERANCE, torch.bfloat16: (2e-2, 2e-2)}


def inputs(cell, make):
    dtype = cell.dtype()
    return [make.normal(cell.shapes[name], dtype) for name in ("x", "residual", "weight")]


def outputs(cell, inputs):
    return [(inputs[0].shape, inputs[0].dtype)] * 2


def bytes_moved(cell, inputs, outputs):
    return size(*inputs, *outputs)


def function(x, residual, weight):
    total = x + residual
    return torch.nn.functional.rms_norm(total, weight.shape, weight, rms_norm.EPSILON), total


def eager(cell, inputs):
    return lambda: function(*inputs)


def to_compile(cell, inputs):
    return function, inputs


def triton_rivals(cell, inputs, outputs):
    x, residual, weight = inputs
    return rms_norm.launches(x, residual, weight, *outputs)
