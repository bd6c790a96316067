"""The plugin's `enqueue`, called as TensorRT does, on PyTorch's stream."""

import ctypes

import torch

# `nvinfer1::DataType` and `nvinfer1::PluginFieldType` of TensorRT-RTX 1.7 (NvInferRuntimeBase.h, NvInferRuntime.h).
TYPES = {torch.float32: 0, torch.float16: 1, torch.int32: 3, torch.bool: 4, torch.bfloat16: 7, torch.int64: 8}
FIELD_F32, FIELD_I32 = 1, 5


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("length", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("extents", ctypes.c_int64 * 8)]


class Refused(RuntimeError):
    """The plugin's error."""


def described(tensor, extents=None):
    extents = tensor.shape if extents is None else extents
    return Tensor(TYPES[tensor.dtype], len(extents), (ctypes.c_int64 * 8)(*extents))


def field(name, value):
    """Returns an attribute in the ONNX parser's form, and the objects that it refers to."""
    values = value if isinstance(value, list) else [value]
    is_float = any(isinstance(one, float) for one in values)
    data = ((ctypes.c_float if is_float else ctypes.c_int32) * len(values))(*values)
    return Field(name.encode(), ctypes.cast(data, ctypes.c_void_p), FIELD_F32 if is_float else FIELD_I32, len(values)), data


class Plugin:
    """A node with buffers; a call enqueues its kernels. `announced` has the extents of data-dependent outputs."""

    def __init__(self, player, libraries, op, attributes, inputs, outputs, announced):
        self.library = ctypes.CDLL(str(player))
        self.library.player_error.restype = ctypes.c_char_p
        self.library.player_node.restype = ctypes.c_void_p
        self.library.player_scratch_bytes.restype = ctypes.c_int64
        paths = (ctypes.c_char_p * len(libraries))(*(str(path).encode() for path in libraries))
        made = [field(name, value) for name, value in attributes.items()]
        fields = (Field * max(len(made), 1))(*(one for one, _ in made))
        said = [*map(described, inputs), *(described(tensor, announced.get(number)) for number, tensor in enumerate(outputs))]
        tensors = (Tensor * len(said))(*said)
        counts = (ctypes.c_int32(len(inputs)), ctypes.c_int32(len(outputs)))
        node = self.library.player_node(paths, ctypes.c_int32(len(libraries)), op.encode(), fields, ctypes.c_int32(len(made)), tensors, *counts)
        if not node:
            raise Refused(self.said())
        self.node = ctypes.c_void_p(node)
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.scratch = torch.empty(max(self.library.player_scratch_bytes(self.node), 1), dtype=torch.uint8, device=outputs[0].device)
        self.input_pointers = pointers(self.inputs)
        self.output_pointers = pointers(self.outputs)

    def said(self):
        return self.library.player_error().decode()

    def __call__(self):
        scratch, stream = ctypes.c_void_p(self.scratch.data_ptr()), ctypes.c_void_p(current_stream())
        if self.library.player_enqueue(self.node, self.input_pointers, self.output_pointers, scratch, stream):
            raise Refused(self.said())
        return self.outputs


def pointers(tensors):
    return (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))


def current_stream():
    return torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else None
