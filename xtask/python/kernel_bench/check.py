"""Compares the rivals with the reference functions of the plugins' tests, on small nodes without a GPU.

    TRITON_INTERPRET=1 python3 -m kernel_bench.check FOLDER_OF_REFERENCE.PY

Needs PyTorch and Triton. Prints a line per comparison; exits with 1 on a difference."""

import importlib
import sys

import torch

from . import operators
from .cells import Cell
from .contenders import Bench, Wrong, reason
from .operators.common import called

EXTENTS = {"extents": [6, 5, 3, 4], "starts": [0, 30]}
# Each node: plugin, shapes, types, attributes, data.
NODES = (
    ("circ_pad_plugin", {"x": [2, 3, 5, 9]}, {}, {"pads": [1, 2, 3, 1]}, {}),
    ("circ_pad_plugin", {"x": [1, 2, 4, 4]}, {"T": "f16"}, {"pads": [1, 1, 1, 1]}, {}),
    ("rms_norm", {"x": [7, 33], "weight": [33]}, {}, {}, {}),
    ("rms_norm", {"x": [5, 64], "weight": [64]}, {"T": "f16"}, {}, {}),
    ("add_rms_norm", {"x": [7, 33], "residual": [7, 33], "weight": [33]}, {}, {}, {}),
    ("rotary_embedding", {"x": [2, 3, 5, 16], "cos": [11, 8], "sin": [11, 8], "positions": [2, 5]}, {}, {}, {}),
    ("rotary_embedding", {"x": [2, 3, 5, 16], "cos": [11, 8], "sin": [11, 8], "positions": [2, 5]}, {}, {"interleaved": True}, {}),
    ("rotary_embedding", {"x": [1, 3, 1, 16], "cos": [11, 8], "sin": [11, 8], "positions": [1, 1]}, {"T": "f16"}, {}, {}),
    ("pillar_scatter", {"features": [20, 5], "coordinates": [20, 4]}, {}, {"height": 9, "width": 7}, {}),
    ("pillar_scatter", {"features": [50, 5], "coordinates": [50, 4]}, {"T": "f16"}, {"batch": 2, "height": 9, "width": 7}, {}),
    ("multiscale_deformable_attention", {"value": [2, 42, 3, 8], "extents": [2, 2], "starts": [2], "locations": [2, 11, 3, 2, 4, 2], "weights": [2, 11, 3, 2, 4]}, {}, {}, EXTENTS),
    ("nms", {"boxes": [150, 4], "scores": [150], "classes": [150]}, {}, {"iou_threshold": 0.5}, {}),
)
DEFAULTS = {"rms_norm": {"epsilon": 1e-5}, "add_rms_norm": {"epsilon": 1e-5}, "rotary_embedding": {"interleaved": False}, "pillar_scatter": {"batch": 1}, "nms": {"score_threshold": -3.4028234663852886e38}}
# Reference functions with other names.
NAMES = {"circ_pad_plugin": "circ_pad"}


def nodes():
    for plugin, shapes, types, attributes, arrays in NODES:
        yield Cell(plugin, "small", called({**types, **attributes}), shapes, types, attributes, arrays)


def reference_of(module, bench):
    """Returns the expected outputs."""
    cell = bench.cell
    function = getattr(module, NAMES.get(cell.plugin, cell.plugin))
    attributes = {**DEFAULTS.get(cell.plugin, {}), **cell.attributes}
    expected = function(*(tensor.numpy() for tensor in bench.inputs), **attributes)
    if isinstance(expected, dict):
        expected = tuple(expected.values())[:1]
    return [torch.from_numpy(array) for array in (expected if isinstance(expected, tuple) else (expected,))]


def contenders(bench):
    try:
        function, arguments = bench.operator.to_compile(bench.cell, bench.inputs)
        yield "torch", bench.eager()
        yield "the compiled function", lambda: function(*arguments)
    except ImportError as error:
        print(f"skipped {bench.cell.key}, torch: {error}", flush=True)
    yield from bench.triton().items()


def main(folder):
    sys.path.insert(0, folder)
    module = importlib.import_module("reference")
    wrong = 0
    for cell in nodes():
        bench = Bench(cell, "cpu")
        expected = bench.expected
        bench.expected = reference_of(module, bench)
        try:
            bench.verify([result.to(tensor.dtype) for result, tensor in zip(expected, bench.empty_outputs())])
            for name, call in contenders(bench):
                for tensor in getattr(call, "outputs", ()):
                    tensor.fill_(-7)
                bench.verify(call())
                print(f"ok {cell.key}, {name}", flush=True)
        except Exception as error: # noqa: BLE001 - others are tried, too
            wrong += 1
            print(f"wrong {cell.key}: {reason(error)}", flush=True)
    missing = set(operators.NAMES) - {cell.plugin for cell in nodes()}
    print(f"not tried: {sorted(missing)}" if missing else "all operators were tried")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
