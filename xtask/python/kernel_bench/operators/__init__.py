"""The operators by plugin name.

Each module defines for a cell:

- `inputs(cell, make)`: tensors in the plugin's order;
- `outputs(cell, inputs)`: shapes and types of the outputs;
- `eager(cell, inputs)`: a function without arguments in idiomatic PyTorch that returns a tuple of tensors;
- `to_compile(cell, inputs)`: a function of tensors for `torch.compile`, and its arguments;
- `triton_rivals(cell, inputs, outputs)`: named configurations, functions without arguments that fill `outputs`;
- `bytes_moved(cell, inputs, outputs)`: minimum bytes to read and write;
- `TOLERANCE`: (atol, rtol) by element type."""

import importlib

NAMES = ("circ_pad_plugin", "rms_norm", "add_rms_norm", "rotary_embedding", "pillar_scatter", "multiscale_deformable_attention", "nms")


def of(plugin):
    return importlib.import_module(f".{plugin}", __name__)
