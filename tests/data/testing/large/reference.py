"""What tensors beyond 2^31 bytes are to hold: computed by PyTorch on the GPU, piece by piece, or by NumPy."""

import numpy as np


def pieces(rows, size=4096):
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def rms_norm(x, weight, epsilon):
    import torch

    scale = torch.from_numpy(weight).cuda().double()
    result = np.empty(x.shape, np.float32)
    for piece in pieces(len(x)):
        rows = torch.from_numpy(x[piece]).cuda().double()
        result[piece] = torch.nn.functional.rms_norm(rows, scale.shape, scale, epsilon).float().cpu().numpy()
    return result


def add_rms_norm(x, residual, weight, epsilon):
    total = x + residual
    return rms_norm(total, weight, epsilon), total


def rotary_embedding(x, cos, sin, positions, interleaved):
    """Of pairs side by side, as complex numbers."""
    import torch

    assert interleaved and 2 * cos.shape[1] == x.shape[3]
    turn = torch.complex(torch.from_numpy(cos).cuda().double(), torch.from_numpy(sin).cuda().double())
    result = np.empty(x.shape, np.float32)
    for batch in range(x.shape[0]):
        places = turn[torch.from_numpy(positions[batch]).cuda()]
        for head in range(x.shape[1]):
            pairs = torch.view_as_complex(torch.from_numpy(x[batch, head]).cuda().double().unflatten(-1, (-1, 2)).contiguous())
            result[batch, head] = torch.view_as_real(pairs * places).flatten(-2).float().cpu().numpy()
    return result


def pillar_scatter(features, coordinates, batch, height, width):
    image = np.zeros((batch, features.shape[1], height * width), features.dtype)
    # NumPy writes in order: of several pillars in a cell the last one is left.
    last = np.full(batch * height * width, -1, np.int64)
    at = coordinates[:, [0, 2, 3]].astype(np.int64)
    inside = ((at >= 0) & (at < [batch, height, width])).all(1)
    last[((at[:, 0] * height + at[:, 1]) * width + at[:, 2])[inside]] = np.flatnonzero(inside)
    shown = last.reshape(batch, -1)
    for one in range(batch):
        places = np.flatnonzero(shown[one] >= 0)
        image[one][:, places] = features[shown[one][places]].T
    return image.reshape(batch, -1, height, width)


def multiscale_deformable_attention(value, extents, starts, locations, weights):
    """With one level, one head and one place, which is what `grid_sample` does."""
    import torch

    height, width = (int(extent) for extent in extents[0])
    image = torch.from_numpy(value).cuda().double()[0, :, 0].T.reshape(1, -1, height, width)
    result = np.empty((1, locations.shape[1], value.shape[3]), np.float32)
    for piece in pieces(locations.shape[1], 65536):
        grid = 2 * torch.from_numpy(locations[:, piece].reshape(1, -1, 1, 2)).cuda().double() - 1
        sampled = torch.nn.functional.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        factor = torch.from_numpy(weights[:, piece].reshape(1, 1, -1, 1)).cuda().double()
        result[:, piece] = (sampled * factor)[0, :, :, 0].T.float().cpu().numpy()
    return result


def circ_pad(x, pads):
    """As many pairs as dimensions, the last dimension first."""
    widths = [(0, 0)] * (x.ndim - len(pads) // 2) + [tuple(pads[i : i + 2]) for i in range(len(pads) - 2, -1, -2)]
    return np.pad(x, widths, mode="wrap")
