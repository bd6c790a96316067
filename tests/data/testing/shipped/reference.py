"""What the plugins that ship are to compute."""

import numpy as np


def circ_pad(x, pads):
    """`pads` come in pairs of before and after, the last dimension first."""
    widths = [(0, 0)] * x.ndim
    for pair in range(len(pads) // 2):
        widths[x.ndim - 1 - pair] = (pads[2 * pair], pads[2 * pair + 1])
    return np.pad(x, widths, mode="wrap") if x.ndim else x


def add_one(x, block_size):
    return (x.astype(np.float32) + np.float32(1)).astype(x.dtype)


def add(x, delta):
    """In single precision, rounded to the type: as the kernel does it."""
    return (x.astype(np.float32) + np.float32(delta)).astype(x.dtype)


def non_zero(x):
    """NaN is not zero, -0.0 is."""
    return np.argwhere(x != 0).astype(np.int32)


def rms_norm(x, weight, epsilon):
    import torch

    rows = torch.from_numpy(x.astype(np.float64))
    scale = torch.from_numpy(weight.astype(np.float64))
    return torch.nn.functional.rms_norm(rows, scale.shape, scale, epsilon).numpy()


def add_rms_norm(x, residual, weight, epsilon):
    """The sum is rounded before it is normalized; of bfloat16, which comes as single precision, the tolerance takes that in."""
    total = x + residual
    return rms_norm(total, weight, epsilon), total


def rotary_embedding(x, cos, sin, positions, interleaved):
    """Each pair is a complex number that is multiplied by another one."""
    pairs = cos.shape[1]
    if not pairs or not x.size:
        return x
    positions = np.clip(positions, 0, len(cos) - 1)
    turn = (cos.astype(np.float64) + 1j * sin.astype(np.float64))[positions][:, None]
    turned = x[..., : 2 * pairs].astype(np.float64)
    first, second = (turned[..., 0::2], turned[..., 1::2]) if interleaved else (turned[..., :pairs], turned[..., pairs:])
    result = (first + 1j * second) * turn
    parts = (result.real, result.imag)
    turned = np.stack(parts, -1).reshape(turned.shape) if interleaved else np.concatenate(parts, -1)
    return np.concatenate([turned, x[..., 2 * pairs :].astype(np.float64)], -1)


def pillar_scatter(features, coordinates, batch, height, width):
    """NumPy writes the rows in their order: of several in a cell the last one is left."""
    image = np.zeros((batch, height, width, features.shape[1]), features.dtype)
    cells = coordinates[:, [0, 2, 3]]
    inside = ((cells >= 0) & (cells < (batch, height, width))).all(1)
    at = tuple(cells[inside].T)
    image[at] = features[inside]
    return np.ascontiguousarray(image.transpose(0, 3, 1, 2))


def multiscale_deformable_attention(value, extents, starts, locations, weights):
    """Bilinear sampling is PyTorch's `grid_sample`. Levels that are not among the pixels sample nothing."""
    import torch

    batch, pixels, heads, channels = value.shape
    queries, levels, points = locations.shape[1], locations.shape[3], locations.shape[4]
    total = np.zeros((batch, heads, channels, queries))
    if not total.size or not points:
        return total.reshape(batch, queries, heads * channels)
    value, locations, weights = (array.astype(np.float64) for array in (value, locations, weights))
    for level in range(levels):
        (height, width), start = extents[level].tolist(), int(starts[level])
        if height <= 0 or width <= 0 or start < 0 or start + height * width > pixels:
            continue
        image = value[:, start : start + height * width].transpose(0, 2, 3, 1).reshape(-1, channels, height, width)
        grid = 2 * locations[:, :, :, level].transpose(0, 2, 1, 3, 4).reshape(-1, queries, points, 2) - 1
        sampled = torch.nn.functional.grid_sample(
            torch.from_numpy(image.copy()), torch.from_numpy(grid.copy()), mode="bilinear", padding_mode="zeros", align_corners=False
        ).numpy()
        factor = weights[:, :, :, level].transpose(0, 2, 1, 3).reshape(-1, 1, queries, points)
        total += (sampled * factor).sum(-1).reshape(total.shape)
    return total.transpose(0, 3, 1, 2).reshape(batch, queries, heads * channels)


def nms(boxes, scores, classes, iou_threshold, score_threshold):
    """Class by class, in single precision: torchvision's `nms` on the CPU, or onnx's evaluator where torchvision is not there.

    Neither says what comes first of one score, so boxes are sorted here, stable, with NaN as the greatest score, and get scores of their own.
    """
    import torch

    boxes, scores = boxes.astype(np.float32), scores.astype(np.float32)
    order = torch.sort(torch.from_numpy(scores), descending=True, stable=True).indices.numpy()
    if score_threshold > np.finfo(np.float32).min:
        order = order[scores[order] > score_threshold]
    boxes, classes = boxes[order], classes[order]
    ranks = -np.arange(len(order), dtype=np.float32)
    suppress = suppress_with_torchvision() or suppress_with_onnx()
    kept = np.zeros(len(order), bool)
    for number in np.unique(classes):
        of_class = np.flatnonzero(classes == number)
        kept[of_class[suppress(boxes[of_class], ranks[of_class], float(np.float32(iou_threshold)))]] = True
    keep = order[kept].astype(np.int32)
    return {"keep": keep, "count": np.array(len(keep), np.int64)}


def suppress_with_torchvision():
    try:
        import torch
        from torchvision.ops import nms as suppress
    except ImportError:
        return None
    return lambda boxes, ranks, threshold: suppress(torch.from_numpy(boxes), torch.from_numpy(ranks), threshold).numpy()


def suppress_with_onnx():
    """Its operator turns boxes whose corners are not the least and the greatest. Such boxes overlap nothing here, so it does not see them."""
    try:
        from onnx import helper
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        raise SystemExit("neither torchvision nor onnx is there to say what non-maximum suppression is to find") from None

    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "threshold"], ["chosen"])
    graph = helper.make_graph(
        [node],
        "suppress",
        [
            helper.make_tensor_value_info("boxes", 1, [1, None, 4]),
            helper.make_tensor_value_info("scores", 1, [1, 1, None]),
            helper.make_tensor_value_info("most", 7, [1]),
            helper.make_tensor_value_info("threshold", 1, [1]),
        ],
        [helper.make_tensor_value_info("chosen", 7, [None, 3])],
    )
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))

    def suppress(boxes, ranks, threshold):
        proper = (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
        at = np.flatnonzero(proper)
        inputs = {
            "boxes": boxes[None, at],
            "scores": ranks[None, None, at],
            "most": np.array([len(at)]),
            "threshold": np.array([threshold], np.float32),
        }
        chosen = at[evaluator.run(None, inputs)[0][:, 2]] if len(at) else at
        return np.concatenate([chosen, np.flatnonzero(~proper)])

    return suppress
