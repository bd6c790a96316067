"""Circular padding of the last two of four dimensions."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, early, options, power_of_two, size

TOLERANCE = {torch.float32: (0.0, 0.0), torch.float16: (0.0, 0.0)}


def inputs(cell, make):
    return [make.normal(cell.shapes["x"], cell.dtype())]


def outputs(cell, inputs):
    left, right, top, bottom = cell.attributes["pads"]
    n, c, h, w = inputs[0].shape
    return [((n, c, h + top + bottom, w + left + right), inputs[0].dtype)]


def bytes_moved(cell, inputs, outputs):
    return size(*inputs, *outputs)


def eager(cell, inputs):
    return lambda: (torch.nn.functional.pad(inputs[0], cell.attributes["pads"], mode="circular"),)


def to_compile(cell, inputs):
    pads = cell.attributes["pads"]
    return (lambda x: (torch.nn.functional.pad(x, pads, mode="circular"),)), inputs


@triton.jit
def of_rows(x, y, rows, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    """Writes `ROWS` rows per program."""
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    line = (row // OH) * H + (row % OH + (H - TOP % H)) % H
    from_column = (column + (W - LEFT % W)) % W
    mask = (row < rows) & (column < OW)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    value = tl.load(x + line.to(tl.int64) * W + from_column, mask=mask)
    tl.store(y + row.to(tl.int64) * OW + column, value, mask=mask)


@triton.jit
def of_elements(x, y, count, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    """Writes `BLOCK` elements per program, across rows."""
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = at // OW
    from_column = (at % OW + (W - LEFT % W)) % W
    line = (row // OH) * H + (row % OH + (H - TOP % H)) % H
    mask = at < count
    if EARLY:
        tl.extra.cuda.gdc_wait()
    tl.store(y + at, tl.load(x + line * W + from_column, mask=mask), mask=mask)


# Elements per program and warps; then rows per program and warps.
FLAT = ((128, 1), (128, 4), (256, 1), (256, 4), (512, 4), (1024, 4), (1024, 8))
ROWS = ((1, 1), (4, 1), (4, 4), (8, 2), (16, 4), (16, 8))


def triton_rivals(cell, inputs, outputs):
    (x,), (y,) = inputs, outputs
    left, _, top, _ = cell.attributes["pads"]
    extents = {"H": x.shape[2], "W": x.shape[3], "OH": y.shape[2], "OW": y.shape[3], "TOP": top, "LEFT": left}
    rows = y.numel() // y.shape[3]
    found = {}

    def add(kernel, count, unit, configuration, more):
        def launch():
            kernel[(ceil_div(count, configuration[unit]),)](x, y, count, **extents, **more, **configuration, **options(configuration))

        found[called(configuration)] = launch

    for configuration in early([{"BLOCK": block, "num_warps": warps} for block, warps in FLAT]):
        add(of_elements, y.numel(), "BLOCK", configuration, {})
    for configuration in early([{"ROWS": rows_of, "num_warps": warps} for rows_of, warps in ROWS]):
        add(of_rows, rows, "ROWS", configuration, {"BLOCK": power_of_two(y.shape[3])})
    return found
