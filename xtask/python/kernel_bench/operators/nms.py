"""Non-maximum suppression per class."""

import torch
import triton
import triton.language as tl

from .common import called, ceil_div, power_of_two, size

# The host must read the number of kept boxes.
WAITS_FOR_THE_HOST = ("torch", "compile default", "compile max-autotune")
# `batched_nms` shifts boxes by class, which rounds; compilers fuse multiply-adds.
TOLERANCE = "5 of 1000 indices, and at least 2"


def inputs(cell, make):
    """Typical detections: several boxes per object, 1066 x 800 pixels, 80 classes."""
    count = cell.shapes["boxes"][0]
    objects = max(count // 8, 1)
    extent = make.array([1066.0, 800.0], [2], torch.float32)
    centers = make.uniform([objects, 2], torch.float32) * extent
    extents = 16 + make.uniform([objects, 2], torch.float32) * 140
    of = make.integers([count], objects, torch.int64)
    at = centers[of] + make.normal([count, 2], torch.float32) * extents[of] * 0.08
    half = extents[of] * (0.5 + 0.05 * make.normal([count, 2], torch.float32)).clamp(0.2, 0.8)
    boxes = torch.cat((at - half, at + half), 1).to(cell.dtype())
    classes = make.integers([objects], 80, torch.int32)[of]
    # Distinct scores.
    scores = (make.permutation(count) + 1).to(torch.float32) / (count + 1)
    return [boxes, scores.to(cell.dtype()), classes]


def outputs(cell, inputs):
    return [((inputs[0].shape[0],), torch.int32), ((), torch.int64)]


ANNOUNCED = {0: [-1]}


def bytes_moved(cell, inputs, outputs):
    """Assumes the maximum output size."""
    return size(*inputs, *outputs)


def expected(cell, inputs):
    """Processes boxes sequentially, with each operation rounded."""
    boxes, scores, classes = (tensor.cpu() for tensor in inputs)
    order = torch.sort(scores.float(), descending=True, stable=True).indices
    boxes, classes = boxes[order].float(), classes[order]
    left = torch.ones(len(order), dtype=torch.bool)
    for number in classes.unique():
        members = torch.nonzero(classes == number)[:, 0]
        over = torch.triu(overlap(boxes[members]) > cell.attributes["iou_threshold"], diagonal=1)
        kept = torch.ones(len(members), dtype=torch.bool)
        for row in range(len(members)):
            if kept[row]:
                kept &= ~over[row]
        left[members] = kept
    return (order[left],)


def overlap(boxes):
    """Returns intersection over union of each pair of boxes."""
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return both / (area[:, None] + area[None, :] - both)


def compare(results, expected):
    """Returns the difference, if any."""
    found = results[0][: int(results[1])] if len(results) == 2 else results[0]
    found, (right,) = set(found.tolist()), expected
    different = len(found ^ set(right.tolist()))
    if different > max(2, 5 * len(right) // 1000):
        return f"{different} indices differ: kept {len(found)}, expected {len(right)}"
    return None


def apart(boxes, classes):
    """Shifts boxes so that classes do not overlap, as `batched_nms` does unless it loops over classes on the host."""
    return boxes + (classes.to(boxes) * (boxes.max() + 1))[:, None]


def function_of(cell):
    import torchvision

    threshold = cell.attributes["iou_threshold"]
    return lambda boxes, scores, classes: (torchvision.ops.nms(apart(boxes, classes), scores, threshold),)


def eager(cell, inputs):
    function = function_of(cell)
    return lambda: function(*inputs)


def to_compile(cell, inputs):
    return function_of(cell), inputs


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def mark(boxes, classes, order, marks, count, words, threshold, ROWS: tl.constexpr):
    """Marks, for each of `ROWS` boxes, the later boxes in a word of 32 that it overlaps too much."""
    first = tl.program_id(0) * ROWS
    word = tl.program_id(1)
    if (word + 1) * 32 > first:
        row = first + tl.arange(0, ROWS)
        lane = tl.arange(0, 32)
        column = word * 32 + lane
        a = tl.load(order + row, mask=row < count, other=0)
        b = tl.load(order + column, mask=column < count, other=0)
        a_left, a_top = tl.load(boxes + 4 * a).to(tl.float32)[:, None], tl.load(boxes + 4 * a + 1).to(tl.float32)[:, None]
        a_right, a_low = tl.load(boxes + 4 * a + 2).to(tl.float32)[:, None], tl.load(boxes + 4 * a + 3).to(tl.float32)[:, None]
        b_left, b_top = tl.load(boxes + 4 * b).to(tl.float32)[None, :], tl.load(boxes + 4 * b + 1).to(tl.float32)[None, :]
        b_right, b_low = tl.load(boxes + 4 * b + 2).to(tl.float32)[None, :], tl.load(boxes + 4 * b + 3).to(tl.float32)[None, :]
        width = tl.maximum(tl.minimum(a_right, b_right) - tl.maximum(a_left, b_left), 0.0)
        height = tl.maximum(tl.minimum(a_low, b_low) - tl.maximum(a_top, b_top), 0.0)
        both = width * height
        covered = (a_right - a_left) * (a_low - a_top) + (b_right - b_left) * (b_low - b_top) - both
        alike = tl.load(classes + a)[:, None] == tl.load(classes + b)[None, :]
        over = (both > threshold * covered) & alike & (column[None, :] > row[:, None]) & (column < count)[None, :]
        bits = tl.sum(over.to(tl.int32) << lane[None, :], axis=1)
        tl.store(marks + row.to(tl.int64) * words + word, bits, mask=row < count)


@triton.jit
def choose(marks, order, keep, kept_count, count, words, WORDS: tl.constexpr):
    """Selects boxes in one program, 32 at a time: a kept box drops all that it has marked."""
    word = tl.arange(0, WORDS)
    lane = tl.arange(0, 32)
    dropped = tl.zeros((WORDS,), tl.int32)
    total = tl.zeros((), tl.int32)
    for block in range(words):
        bits = tl.sum(tl.where(word == block, dropped, 0))
        kept_bits = tl.zeros((), tl.int32)
        for i in tl.static_range(32):
            row = block * 32 + i
            own = tl.load(marks + row.to(tl.int64) * words + block, mask=row < count, other=0)
            is_kept = (((bits >> i) & 1) == 0) & (row < count)
            bits = tl.where(is_kept, bits | own, bits)
            kept_bits = kept_bits | (is_kept.to(tl.int32) << i)
        rows = block * 32 + lane
        is_kept = ((kept_bits >> lane) & 1) == 1
        later = (word > block) & (word < words)
        marked = tl.load(marks + rows[:, None].to(tl.int64) * words + word[None, :], mask=is_kept[:, None] & later[None, :], other=0)
        dropped = dropped | tl.reduce(marked, 0, either)
        place = total + tl.cumsum(is_kept.to(tl.int32), 0) - 1
        tl.store(keep + place, tl.load(order + rows, mask=is_kept, other=0).to(tl.int32), mask=is_kept)
        total += tl.sum(is_kept.to(tl.int32))
    tl.store(kept_count, total.to(tl.int64))


SHAPES = ((32, 1, 4), (64, 2, 4), (64, 4, 8), (128, 4, 16), (256, 8, 32))


def triton_rivals(cell, inputs, outputs):
    """A bit matrix of box pairs, then one pass over it, as in torchvision's kernels."""
    (boxes, scores, classes), (keep, kept_count) = inputs, outputs
    count = boxes.shape[0]
    words = ceil_div(count, 32)
    marks = torch.empty(count * words, dtype=torch.int32, device=boxes.device)
    found = {}
    for rows, warps, choosing in SHAPES:

        def launch(rows=rows, warps=warps, choosing=choosing):
            order = torch.sort(scores, descending=True, stable=True).indices
            mark[(ceil_div(count, rows), words)](boxes, classes, order, marks, count, words, cell.attributes["iou_threshold"], ROWS=rows, num_warps=warps)
            choose[(1,)](marks, order, keep, kept_count, count, words, WORDS=max(power_of_two(words), 16), num_warps=choosing)

        found[called({"ROWS": rows, "num_warps": warps, "num_warps of choose": choosing})] = launch
    return found
