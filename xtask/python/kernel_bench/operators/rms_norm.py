"""Root mean square normalization of rows."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, early, options, power_of_two, size

TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.float16: (1e-3, 2e-3), torch.bfloat16: (1e-3, 1.6e-2)}
EPSILON = 1e-5


def inputs(cell, make):
    dtype = cell.dtype()
    return [make.normal(cell.shapes["x"], dtype), make.normal(cell.shapes["weight"], dtype)]


def outputs(cell, inputs):
    return [(inputs[0].shape, inputs[0].dtype)]


def bytes_moved(cell, inputs, outputs):
    return size(*inputs, *outputs)


def function(x, weight):
    return (torch.nn.functional.rms_norm(x, weight.shape, weight, EPSILON),)


def eager(cell, inputs):
    return lambda: function(*inputs)


def to_compile(cell, inputs):
    return function, inputs


@triton.jit
def kernel(x, residual, weight, y, total, rows, width, epsilon, ROWS: tl.constexpr, BLOCK: tl.constexpr, RESIDUAL: tl.constexpr, EARLY: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    at = row * width + column
    mask = (row < rows) & (column < width)
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    # An earlier kernel may write the weights.
    if EARLY:
        tl.extra.cuda.gdc_wait()
    scale = tl.load(weight + column, mask=column < width, other=0.0, eviction_policy="evict_last")
    value = tl.load(x + at, mask=mask, other=0.0, eviction_policy="evict_first")
    if RESIDUAL:
        value = (value.to(tl.float32) + tl.load(residual + at, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)).to(value.dtype)
        tl.store(total + at, value, mask=mask)
    single = value.to(tl.float32)
    factor = tl.rsqrt(tl.sum(single * single, axis=1, keep_dims=True) / width + epsilon)
    tl.store(y + at, (single * factor * scale.to(tl.float32)).to(y.dtype.element_ty), mask=mask)


# Rows per program, and warps.
SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (4, 8), (4, 16))


def launches(x, residual, weight, y, total):
    width = x.shape[-1]
    rows = x.numel() // width
    found = {}
    for configuration in early([{"ROWS": rows_of, "num_warps": warps} for rows_of, warps in SHAPES]):

        def launch(configuration=configuration):
            grid = (ceil_div(rows, configuration["ROWS"]),)
            more = {"BLOCK": power_of_two(width), "RESIDUAL": residual is not None, **configuration, **options(configuration)}
            kernel[grid](x, residual, weight, y, total, rows, width, EPSILON, **more)

        found[called(configuration)] = launch
    return found


def triton_rivals(cell, inputs, outputs):
    x, weight = inputs
    return launches(x, None, weight, outputs[0], None)
