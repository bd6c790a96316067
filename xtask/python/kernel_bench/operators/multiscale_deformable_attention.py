"""Multi-scale deformable attention, the operator of Deformable DETR."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, early, options, power_of_two, size

# Sampling positions are single-precision products: errors of about 1e-5 pixels.
TOLERANCE = {torch.float32: (2e-4, 1e-4), torch.float16: (1e-2, 1e-2), torch.bfloat16: (5e-2, 5e-2)}


def inputs(cell, make):
    dtype, integer = cell.dtype(), cell.dtype("I", "i64")
    value = make.normal(cell.shapes["value"], dtype)
    extents = make.array(cell.arrays["extents"], cell.shapes["extents"], integer)
    starts = make.array(cell.arrays["starts"], cell.shapes["starts"], integer)
    locations = make.uniform(cell.shapes["locations"], dtype)
    weights = make.normal(cell.shapes["weights"], torch.float32).flatten(-2).softmax(-1).reshape(cell.shapes["weights"])
    return [value, extents, starts, locations, weights.to(dtype)]


def outputs(cell, inputs):
    value, locations = inputs[0], inputs[3]
    return [((value.shape[0], locations.shape[1], value.shape[2] * value.shape[3]), value.dtype)]


def bytes_moved(cell, inputs, outputs):
    """Counts only the sampled part of `value`."""
    value, _, _, locations, weights = inputs
    sampled = 4 * weights.numel() * value.shape[3] * value.element_size()
    return min(size(value), sampled) + size(*inputs[1:], *outputs)


def function_of(cell):
    """`ms_deform_attn_core_pytorch` of Deformable DETR, which needs the extents in host memory."""
    numbers = cell.arrays["extents"]
    levels = list(zip(numbers[0::2], numbers[1::2]))

    def function(value, locations, weights):
        batch, _, heads, channels = value.shape
        queries, points = locations.shape[1], locations.shape[4]
        maps = value.split([height * width for height, width in levels], dim=1)
        grids = 2 * locations - 1
        sampled = []
        for level, (height, width) in enumerate(levels):
            image = maps[level].flatten(2).transpose(1, 2).reshape(batch * heads, channels, height, width)
            grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append(torch.nn.functional.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False))
        factors = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(levels) * points)
        total = (torch.stack(sampled, dim=-2).flatten(-2) * factors).sum(-1).view(batch, heads * channels, queries)
        return (total.transpose(1, 2).contiguous(),)

    return function


def eager(cell, inputs):
    value, _, _, locations, weights = inputs
    function = function_of(cell)
    return lambda: function(value, locations, weights)


def to_compile(cell, inputs):
    value, _, _, locations, weights = inputs
    return function_of(cell), [value, locations, weights]


@triton.jit
def corner(image, line, column, height, width, stride, factor, mask):
    """A pixel's contribution, 0 outside the image."""
    inside = mask & (line >= 0) & (line < height) & (column >= 0) & (column < width)
    pixel = tl.load(image + (line * width + column)[:, None] * stride, mask=inside[:, None], other=0.0)
    return pixel.to(tl.float32) * factor[:, None]


@triton.jit
def kernel(
    value, extents, starts, locations, weights, y, rows, pixels, queries, heads, channels, LEVELS: tl.constexpr, POINTS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, EARLY: tl.constexpr
):
    """Sums all channels of `ROWS` query heads per program. Tensors have at most 2^31 elements."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, CHANNELS)
    is_there = row < rows
    mask_of_channels = (channel < channels)[None, :]
    head = row % heads
    batch = row // heads // queries
    stride = heads * channels
    of_head = value + ((batch * pixels * heads + head) * channels)[:, None] + tl.where(mask_of_channels, channel[None, :], 0)
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    for level in range(LEVELS):
        height = tl.load(extents + 2 * level).to(tl.int32)
        width = tl.load(extents + 2 * level + 1).to(tl.int32)
        image = of_head + tl.load(starts + level).to(tl.int32) * stride
        for point in tl.static_range(POINTS):
            at = (row * LEVELS + level) * POINTS + point
            x = tl.load(locations + 2 * at, mask=is_there, other=0.0).to(tl.float32) * width - 0.5
            y_of = tl.load(locations + 2 * at + 1, mask=is_there, other=0.0).to(tl.float32) * height - 0.5
            factor = tl.load(weights + at, mask=is_there, other=0.0).to(tl.float32)
            left, top = tl.floor(x), tl.floor(y_of)
            right_part, lower_part = x - left, y_of - top
            column, line = left.to(tl.int32), top.to(tl.int32)
            total += corner(image, line, column, height, width, stride, factor * (1 - lower_part) * (1 - right_part), is_there)
            total += corner(image, line, column + 1, height, width, stride, factor * (1 - lower_part) * right_part, is_there)
            total += corner(image, line + 1, column, height, width, stride, factor * lower_part * (1 - right_part), is_there)
            total += corner(image, line + 1, column + 1, height, width, stride, factor * lower_part * right_part, is_there)
    to = y + row[:, None].to(tl.int64) * channels + channel[None, :]
    tl.store(to, total.to(y.dtype.element_ty), mask=is_there[:, None] & mask_of_channels)


SHAPES = ((4, 1), (8, 1), (16, 1), (8, 2), (16, 2), (32, 2), (16, 4), (32, 4), (64, 4), (64, 8))


def triton_rivals(cell, inputs, outputs):
    value, extents, starts, locations, weights = inputs
    batch, pixels, heads, channels = value.shape
    queries, levels, points = locations.shape[1], locations.shape[3], locations.shape[4]
    rows = batch * queries * heads
    found = {}
    for configuration in early([{"ROWS": rows_of, "num_warps": warps} for rows_of, warps in SHAPES]):

        def launch(configuration=configuration):
            more = {"LEVELS": levels, "POINTS": points, "CHANNELS": power_of_two(channels), **configuration, **options(configuration)}
            grid = (ceil_div(rows, configuration["ROWS"]),)
            kernel[grid](value, extents, starts, locations, weights, outputs[0], rows, pixels, queries, heads, channels, **more)

        found[called(configuration)] = launch
    return found
