"""Scatters pillar features into an image."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, early, options, power_of_two, size

TOLERANCE = {dtype: (0.0, 0.0) for dtype in (torch.float32, torch.float16, torch.bfloat16)}


def extents(cell):
    return cell.attributes.get("batch", 1), cell.attributes["height"], cell.attributes["width"]


def inputs(cell, make):
    """Typical voxels: each cell at most once, unordered."""
    batch, height, width = extents(cell)
    pillars = cell.shapes["features"][0]
    cells = make.permutation(batch * height * width)[:pillars]
    image, cell_of = cells // (height * width), cells % (height * width)
    coordinates = torch.stack((image, torch.zeros_like(image), cell_of // width, cell_of % width), 1).int()
    return [make.normal(cell.shapes["features"], cell.dtype()), coordinates]


def outputs(cell, inputs):
    batch, height, width = extents(cell)
    return [((batch, inputs[0].shape[1], height, width), inputs[0].dtype)]


def bytes_moved(cell, inputs, outputs):
    return size(*inputs, *outputs)


def function_of(cell):
    """OpenPCDet's PointPillarScatter per image, which checks neither the image's bounds nor cells with several pillars;
    the plugin uses the last one."""
    batch, height, width = extents(cell)

    def function(features, coordinates):
        at = coordinates[:, 2].long() * width + coordinates[:, 3]
        image = torch.zeros(batch, features.shape[1], height * width, dtype=features.dtype, device=features.device)
        if batch == 1:
            image[0][:, at] = features.t()
        else:
            image[coordinates[:, 0].long(), :, at] = features
        return (image.view(batch, features.shape[1], height, width),)

    return function


def eager(cell, inputs):
    function = function_of(cell)
    return lambda: function(*inputs)


def to_compile(cell, inputs):
    return function_of(cell), inputs


@triton.jit
def scatter(features, coordinates, image, pillars, channels, height, width, PILLARS: tl.constexpr, CHANNELS: tl.constexpr):
    """Scatters into a zero image; of several pillars in a cell any may win."""
    pillar = tl.program_id(0) * PILLARS + tl.arange(0, PILLARS)
    channel = tl.arange(0, CHANNELS)
    is_there = pillar < pillars
    of_image = tl.load(coordinates + 4 * pillar, mask=is_there, other=0)
    row = tl.load(coordinates + 4 * pillar + 2, mask=is_there, other=-1)
    column = tl.load(coordinates + 4 * pillar + 3, mask=is_there, other=-1)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    mask = inside[:, None] & (channel < channels)[None, :]
    value = tl.load(features + pillar[:, None].to(tl.int64) * channels + channel[None, :], mask=mask)
    plane = of_image[:, None].to(tl.int64) * channels + channel[None, :]
    tl.store(image + plane * height * width + (row * width + column)[:, None], value, mask=mask)


@triton.jit
def find(coordinates, shown, pillars, batch, height, width, BLOCK: tl.constexpr):
    pillar = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_there = pillar < pillars
    image = tl.load(coordinates + 4 * pillar, mask=is_there, other=-1)
    row = tl.load(coordinates + 4 * pillar + 2, mask=is_there, other=-1)
    column = tl.load(coordinates + 4 * pillar + 3, mask=is_there, other=-1)
    inside = (image >= 0) & (image < batch) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    tl.atomic_max(shown + (image.to(tl.int64) * height + row) * width + column, pillar, mask=inside, sem="relaxed")


@triton.jit
def show(features, shown, image, cells, channels, CELLS: tl.constexpr, CHANNELS: tl.constexpr, EARLY: tl.constexpr):
    cell = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    of_image = tl.program_id(2).to(tl.int64)
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    pillar = tl.load(shown + of_image * cells + cell, mask=cell < cells, other=-1)
    is_written = (channel < channels)[:, None] & (cell < cells)[None, :]
    value = tl.load(features + pillar[None, :].to(tl.int64) * channels + channel[:, None], mask=is_written & (pillar >= 0)[None, :], other=0.0)
    plane = of_image * channels + channel[:, None]
    tl.store(image + plane * cells + cell[None, :], value, mask=is_written, cache_modifier=".cs")


# Pillars per program and warps; then cells and channels per program and warps.
SCATTERED = ((1, 1), (4, 1), (8, 2), (16, 4), (32, 4))
SHOWN = ((128, 8, 4), (256, 8, 4), (256, 16, 4), (512, 8, 4), (512, 16, 8), (1024, 4, 4), (1024, 8, 8), (64, 64, 4), (128, 32, 4), (128, 64, 8))


def triton_rivals(cell, inputs, outputs):
    """Either scatters into zeros, or finds each cell's pillar and writes the image once."""
    (features, coordinates), (image,) = inputs, outputs
    batch, height, width = extents(cell)
    pillars, channels = features.shape
    shown = torch.empty(batch * height * width, dtype=torch.int32, device=features.device)
    found = {}

    def add_scatter(configuration):
        def launch():
            image.zero_()
            grid = (ceil_div(pillars, configuration["PILLARS"]),)
            scatter[grid](features, coordinates, image, pillars, channels, height, width, CHANNELS=power_of_two(channels), **configuration)

        found["scatter " + called(configuration)] = launch

    def add_show(configuration):
        def launch():
            shown.fill_(-1)
            find[(ceil_div(pillars, 256),)](coordinates, shown, pillars, batch, height, width, BLOCK=256)
            grid = (ceil_div(height * width, configuration["CELLS"]), ceil_div(channels, configuration["CHANNELS"]), batch)
            show[grid](features, shown, image, height * width, channels, **configuration, **options(configuration))

        found["gather " + called(configuration)] = launch

    for pillars_of, warps in SCATTERED:
        add_scatter({"PILLARS": pillars_of, "num_warps": warps})
    for configuration in early([{"CELLS": cells, "CHANNELS": of, "num_warps": warps} for cells, of, warps in SHOWN]):
        add_show(configuration)
    return found
