"""The operators, by the names of their plugins.

Each module says of a cell:

- `inputs(cell, make)`: tensors, in the plugin's order;
- `outputs(cell, inputs)`: shapes and types of the plugin's outputs;
- `eager(cell, inputs)`: a function without arguments, as one writes it with PyTorch; a tuple of tensors;
- `to_compile(cell, inputs)`: a function of tensors for `torch.compile`, and its arguments;
- `triton_rivals(cell, inputs, outputs)`: configurations by what they are called, each a function without arguments that fills `outputs`;
- `bytes_moved(cell, inputs, outputs)`: what must be read and written, each once;
- `TOLERANCE`: how far results may be off, by the type of the elements: (atol, rtol).
"""

import importlib

NAMES = ("circ_pad_plugin", "rms_norm", "add_rms_norm", "rotary_embedding", "pillar_scatter", "multiscale_deformable_attention", "nms")


def of(plugin):
    return importlib.import_module(f".{plugin}", __name__)
