"""Rotary position embedding."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, early, options, size

# PyTorch rounds 16-bit products before adding.
TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.float16: (1e-2, 1e-2), torch.bfloat16: (6e-2, 2e-2)}


def inputs(cell, make):
    dtype = cell.dtype()
    batch, _, places, _ = cell.shapes["x"]
    known, pairs = cell.shapes["cos"]
    angles = torch.outer(torch.arange(known, device=make.device), 10000.0 ** (-torch.arange(pairs, device=make.device) / pairs))
    # A single token follows others.
    first = known // 3 if places == 1 else 0
    positions = torch.arange(first, first + places, device=make.device).expand(batch, places).contiguous()
    return [make.normal(cell.shapes["x"], dtype), angles.cos().to(dtype), angles.sin().to(dtype), positions.to(cell.dtype("P", "i64"))]


def outputs(cell, inputs):
    return [(inputs[0].shape, inputs[0].dtype)]


def bytes_moved(cell, inputs, outputs):
    """Counts only the used rows of the tables."""
    x, cos, sin, positions = inputs
    rows = positions.unique().numel()
    return size(x, positions, *outputs) + size(cos[:rows], sin[:rows])


def is_interleaved(cell):
    return cell.attributes.get("interleaved", False)


def halves(x, pairs, interleaved):
    return (x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]) if interleaved else (x[..., :pairs], x[..., pairs : 2 * pairs])


def eager(cell, inputs):
    """Uses the fewest memory passes that PyTorch allows."""
    x, cos, sin, positions = inputs

    def run():
        c, s = cos[positions][:, None], sin[positions][:, None]
        y = torch.empty_like(x)
        pairs = cos.shape[1]
        first, second = halves(x, pairs, is_interleaved(cell))
        to_first, to_second = halves(y, pairs, is_interleaved(cell))
        torch.mul(first, c, out=to_first)
        to_first.addcmul_(second, s, value=-1)
        torch.mul(first, s, out=to_second)
        to_second.addcmul_(second, c)
        y[..., 2 * pairs :] = x[..., 2 * pairs :]
        return (y,)

    return run


def to_compile(cell, inputs):
    interleaved = is_interleaved(cell)

    def function(x, cos, sin, positions):
        c, s = cos[positions][:, None].float(), sin[positions][:, None].float()
        pairs = cos.shape[1]
        first, second = (half.float() for half in halves(x, pairs, interleaved))
        parts = (first * c - second * s, first * s + second * c)
        turned = torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)
        turned = turned.to(x.dtype)
        return (turned if 2 * pairs == x.shape[-1] else torch.cat((turned, x[..., 2 * pairs :]), -1),)

    return function, inputs


@triton.jit
def kernel(
    x, cos, sin, positions, y, heads, places, width, PAIRS: tl.constexpr, INTERLEAVED: tl.constexpr, HEADS: tl.constexpr, PLACES: tl.constexpr, EARLY: tl.constexpr
):
    """Rotates `HEADS` heads at `PLACES` positions per program; whole heads, with a power of two of pairs."""
    batch = tl.program_id(2).to(tl.int64)
    place = tl.program_id(0) * PLACES + tl.arange(0, PLACES)[:, None]
    pair = tl.arange(0, PAIRS)[None, :]
    is_there = place < places
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    position = tl.load(positions + batch * places + place, mask=is_there, other=0)
    c = tl.load(cos + position * PAIRS + pair, mask=is_there, other=0.0).to(tl.float32)
    s = tl.load(sin + position * PAIRS + pair, mask=is_there, other=0.0).to(tl.float32)
    for head in tl.static_range(HEADS):
        number = tl.program_id(1) * HEADS + head
        mask = place < tl.where(number < heads, places, 0)
        row = ((batch * heads + number) * places + place) * width
        if INTERLEAVED:
            at = row + tl.arange(0, 2 * PAIRS)[None, :]
            value = tl.load(x + at, mask=mask, other=0.0)
            first, second = tl.split(tl.reshape(value, (PLACES, PAIRS, 2)).to(tl.float32))
            turned = tl.join(first * c - second * s, first * s + second * c)
            tl.store(y + at, tl.reshape(turned, (PLACES, 2 * PAIRS)).to(value.dtype), mask=mask)
        else:
            at = row + pair
            first = tl.load(x + at, mask=mask, other=0.0)
            second = tl.load(x + at + PAIRS, mask=mask, other=0.0)
            a, b = first.to(tl.float32), second.to(tl.float32)
            tl.store(y + at, (a * c - b * s).to(first.dtype), mask=mask)
            tl.store(y + at + PAIRS, (a * s + b * c).to(first.dtype), mask=mask)


# Heads and positions per program, and warps.
SHAPES = ((1, 1, 1), (1, 4, 1), (1, 8, 2), (1, 16, 4), (4, 1, 1), (4, 4, 2), (4, 8, 2), (4, 16, 4), (8, 8, 2), (8, 16, 4), (2, 32, 4))


def triton_rivals(cell, inputs, outputs):
    x, cos, sin, positions = inputs
    batch, heads, places, width = x.shape
    found = {}
    for configuration in early([{"HEADS": a, "PLACES": b, "num_warps": warps} for a, b, warps in SHAPES]):

        def launch(configuration=configuration):
            grid = (ceil_div(places, configuration["PLACES"]), ceil_div(heads, configuration["HEADS"]), batch)
            more = {"PAIRS": cos.shape[1], "INTERLEAVED": is_interleaved(cell), **configuration, **options(configuration)}
            kernel[grid](x, cos, sin, positions, outputs[0], heads, places, width, **more)

        found[called(configuration)] = launch
    return found
