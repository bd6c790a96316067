"""Runs the plugins of a library without TensorRT, through the C interface of `cubinder_runtime.h`."""

import ctypes
import json
import math
import struct
import subprocess
import threading

from . import program

# CUBINDER_INTERFACE_VERSION of cubinder_runtime.h.
VERSION = 1
MAX_RANK = 8

# nvinfer1::PluginFieldType.
FLOAT32, INT8, CHAR, INT64 = 1, 3, 6, 10

CONSTANT, EXTENT, SIZE = -1, -2, -3


class PluginError(RuntimeError):
    """A plugin rejected a call, or its library cannot be used. Kernels without Python raise RuntimeError."""


class Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("length", ctypes.c_int32)]


class CallData(ctypes.Structure):
    """`CubinderCall`."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("ranks", "extents", "inputs", "outputs", "workspace")]
    _fields_ += [("workspace_bytes", ctypes.c_uint64), ("stream", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_int32) for name in ("rank_count", "extent_count", "input_count", "output_count")]


def describe(path):
    """Returns the plugins of a library as `cubinder inspect --json` reports them."""
    command = [str(program()), "inspect", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PluginError(f"cannot read `{path}`:\n{(done.stderr or done.stdout).strip()}")
    report = json.loads(done.stdout)
    if report["kind"] != "library":
        raise PluginError(f"`{path}` is not a plugin library; pass a library that `cubinder compile` wrote")
    return [plugin for container in report["containers"] for plugin in container["plugins"]]


class Library:
    """A plugin library in this process; it is never unloaded."""

    def __init__(self, path):
        try:
            self.functions = ctypes.CDLL(str(path))
            version = self.functions.cubinder_interface_version
        except (OSError, AttributeError) as error:
            raise PluginError(f"cannot use `{path}`: {error}; compile it again with this version of Cubinder") from error
        version.restype = ctypes.c_uint32
        if version() != VERSION:
            raise PluginError(f"`{path}` has version {version()} of the C interface, expected {VERSION}; compile it again with this version of Cubinder")
        pointer, i32 = ctypes.c_void_p, ctypes.c_int32
        shapes = [pointer, pointer, i32, pointer, i32]
        self.free = self.function("free_message", [pointer], None)
        self.create = self.function("operator_create", [ctypes.c_char_p, pointer, i32, pointer, i32, pointer])
        self.destroy = self.function("operator_destroy", [pointer], None)
        self.output_types = self.function("operator_output_types", [pointer, pointer, i32])
        self.output_shapes = self.function("operator_output_shapes", [*shapes, pointer, pointer, pointer, i32])
        self.shape_program = self.function("operator_shape_program", [pointer, pointer, i32, pointer, i32, pointer])
        self.run = self.function("operator_run", [pointer, pointer, pointer])

    def function(self, name, arguments, result=ctypes.c_void_p):
        function = getattr(self.functions, "cubinder_" + name)
        function.argtypes, function.restype = arguments, result
        return function

    def check(self, message):
        """Raises the error that a function returned."""
        if message:
            text = ctypes.string_at(message).decode(errors="replace")
            self.free(message)
            raise PluginError(text)


def field(name, kind, value):
    """Returns an attribute as an ONNX node passes it, and the data that it refers to.

    `struct.pack` of a float beyond the range fails, or returns infinity.
    """
    values = value if isinstance(value, (list, tuple)) else [value]
    if kind == "bytes":
        return Attribute(name.encode(), None, INT8, len(values)), bytes(values)
    if kind.startswith("string"):
        data = b"".join(text.encode() + b"\0" for text in values)
        return Attribute(name.encode(), None, CHAR, len(data)), data
    if not kind.startswith("f"):
        return Attribute(name.encode(), None, INT64, len(values)), struct.pack(f"{len(values)}q", *map(int, values))
    # ONNX has floats of 32 bits.
    data = struct.pack(f"{len(values)}f", *values)
    for value, rounded in zip(values, struct.unpack(f"{len(values)}f", data)):
        if math.isfinite(value) and not math.isfinite(rounded):
            raise PluginError(f"the attribute `{name}` is {value}, beyond the range of single precision, in which ONNX stores floats")
    return Attribute(name.encode(), None, FLOAT32, len(values)), data


class Operator:
    """A plugin with attributes and input types, on one device.

    `attributes` are (name, type of the manifest, value); types are TensorRT's numbers. Shapes are lists of extents in
    the plugin's order; a shape input has its values instead.
    """

    def __init__(self, library, plugin, attributes, input_types, outputs):
        self.library, self.outputs, self.programs = library, outputs, {}
        fields = [field(*attribute) for attribute in attributes]
        buffers = [ctypes.create_string_buffer(data, len(data)) for _, data in fields]
        array = (Attribute * len(fields))(*(attribute for attribute, _ in fields))
        for attribute, buffer in zip(array, buffers):
            attribute.data = ctypes.addressof(buffer)
        types = i32s(input_types)
        self.handle = ctypes.c_void_p()
        library.check(library.create(plugin.encode(), array, len(array), types, len(types), ctypes.byref(self.handle)))
        found = (ctypes.c_int32 * outputs)()
        library.check(library.output_types(self.handle, found, outputs))
        self.output_types = list(found)

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.destroy(self.handle)

    def output_shapes(self, inputs, sizes=None):
        """Returns the shapes of outputs; data-dependent sizes are `sizes`, by output, or their upper bounds."""
        ranks, extents = (ctypes.c_int32 * self.outputs)(), (ctypes.c_int64 * (MAX_RANK * self.outputs))()
        sizes = i64s(sizes) if sizes is not None else None
        given = Shapes(inputs)
        self.library.check(self.library.output_shapes(self.handle, *given.arguments, sizes, ranks, extents, self.outputs))
        return [tuple(extents[MAX_RANK * i : MAX_RANK * i + rank]) for i, rank in enumerate(ranks)]

    def symbolic_shapes(self, inputs, size, maximum=max, minimum=min):
        """Returns the shapes of outputs for extents that may be symbols; `size(output)` returns a data-dependent size."""
        ranks = tuple(len(extents) for extents in inputs)
        if ranks not in self.programs:
            self.programs[ranks] = self.program(ranks)
        instructions, outputs = self.programs[ranks]
        operations = [*OPERATIONS[:2], maximum, minimum, *OPERATIONS[4:]]
        values, sizes = [], {}
        for code, first, second in instructions:
            if code == CONSTANT:
                values.append(first)
            elif code == EXTENT:
                values.append(inputs[first][second])
            elif code == SIZE:
                if first not in sizes:
                    sizes[first] = size(first)
                values.append(sizes[first])
            else:
                values.append(operations[code](values[first], values[second]))
        return [tuple(values[i] for i in output) for output in outputs]

    def program(self, ranks):
        length, array = ctypes.c_int32(), i32s(ranks)
        call = lambda words, capacity: self.library.check(
            self.library.shape_program(self.handle, array, len(array), words, capacity, ctypes.byref(length))
        )
        call(None, 0)
        words = (ctypes.c_int64 * length.value)()
        call(words, length.value)
        count, rest = words[0], list(words[1:])
        instructions = [tuple(rest[i : i + 3]) for i in range(0, 3 * count, 3)]
        outputs, rest = [], rest[3 * count :]
        while rest:
            rank, *rest = rest
            outputs.append(rest[:rank])
            rest = rest[rank:]
        return instructions, outputs


class Torch:
    """Kernels of `libcubinder_torch.so`, which PyTorch calls without Python."""

    # The order of `Functions` in `runtime-plugin/torch/src/functions.rs`, with the library of each part. Plugin libraries
    # have those without one.
    FUNCTIONS = (
        ("libtorch_cpu.so", "aoti_torch_check aoti_torch_grad_mode_is_enabled"),
        ("libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv"),
        (
            "libtorch_cpu.so",
            "aoti_torch_delete_tensor_object aoti_torch_get_dim aoti_torch_get_sizes aoti_torch_get_dtype "
            "aoti_torch_get_device_type aoti_torch_get_device_index aoti_torch_get_data_ptr aoti_torch_is_contiguous "
            "aoti_torch_empty_strided aoti_torch_copy_",
        ),
        ("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream"),
        (
            None,
            "cubinder_free_message cubinder_operator_create cubinder_operator_destroy cubinder_operator_output_types "
            "cubinder_operator_output_shapes cubinder_operator_run",
        ),
        (
            "libcuda.so.1",
            "cuCtxGetDevice cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxPushCurrent_v2 cuCtxPopCurrent_v2",
        ),
    )

    def __init__(self, kernels, folder):
        """`kernels` is `libcubinder_torch.so`, `folder` that of PyTorch's libraries. Fails with OSError if a library is
        missing, with LookupError if a function is."""
        size = ctypes.c_size_t
        self.make = ctypes.CDLL(str(kernels)).cubinder_torch_kernel
        self.make.argtypes = [ctypes.c_void_p, size, ctypes.c_char_p, ctypes.c_void_p, size, size, size, ctypes.c_void_p]
        self.make.restype = None
        names = [library for library, _ in self.FUNCTIONS if library]
        # PyTorch has loaded its libraries; the driver is found by name.
        self.libraries = {name: ctypes.CDLL(name if name == "libcuda.so.1" else str(folder / name)) for name in names}
        torch = self.libraries["libtorch_cpu.so"]
        self.what = getattr(torch, "torch_exception_get_what_without_backtrace", None)
        self.init, self.impl = function(torch, "aoti_torch_library_init_impl"), function(torch, "aoti_torch_library_impl")
        self.addresses(None)

    def addresses(self, plugins):
        """Returns the table of functions; `plugins` is a library of plugins."""
        parts = [(self.libraries.get(library, plugins), names.split()) for library, names in self.FUNCTIONS]
        found = [function(library, name) for library, names in parts if library for name in names]
        found = [ctypes.cast(one, ctypes.c_void_p).value for one in [*found, self.what]]
        return (ctypes.c_void_p * len(found))(*found)

    def implement(self, library, plugin, attributes, tensors, outputs, namespace, name, dispatch_key="CUDA"):
        """Implements the operator `namespace::name`; returns False if all kernels are used, or if PyTorch rejects it.

        `attributes` are names and types: `FLOAT32` for floats, `INT8` for bools, `INT64` for integers."""
        table = self.addresses(library.functions)
        array = (Attribute * len(attributes))(*(Attribute(one.encode(), None, kind, 1) for one, kind in attributes))
        kernel, owner, line = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32(0)
        self.make(table, len(table), plugin.encode(), array, len(array), tensors, outputs, ctypes.byref(kernel))
        if not kernel or self.init(namespace.encode(), dispatch_key.encode(), __file__.encode(), line, ctypes.byref(owner)):
            return False
        return self.impl(owner, name.encode(), kernel) == 0


class Shapes:
    """Shapes of inputs as the C interface takes them."""

    def __init__(self, inputs):
        self.ranks, self.extents = i32s([len(extents) for extents in inputs]), i64s([e for extents in inputs for e in extents])
        self.arguments = (self.ranks, len(self.ranks), self.extents, len(self.extents))


class Call:
    """A call of an operator with certain shapes; threads wait for each other."""

    def __init__(self, operator, shapes, inputs):
        self.operator, self.shapes, self.lock = operator, Shapes(shapes), threading.Lock()
        self.function = operator.library.run
        self.inputs, self.outputs = (ctypes.c_uint64 * inputs)(), (ctypes.c_uint64 * operator.outputs)()
        self.needed = ctypes.c_uint64()
        places = (self.shapes.ranks, self.shapes.extents, self.inputs, self.outputs)
        counts = (len(place) for place in places)
        self.data = CallData(*map(ctypes.addressof, places), None, 0, None, *counts)
        self.arguments = (operator.handle, ctypes.byref(self.data), ctypes.byref(self.needed))

    def run(self, inputs, outputs, workspace, workspace_bytes, stream):
        """Launches the kernels for tensors (objects with `data_ptr`), and returns the needed workspace; nothing is
        launched if it is more than given."""
        data, places = self.data, self.inputs
        with self.lock:
            for index, tensor in enumerate(inputs):
                places[index] = tensor.data_ptr()
            places = self.outputs
            for index, tensor in enumerate(outputs):
                places[index] = tensor.data_ptr()
            data.workspace, data.workspace_bytes, data.stream = workspace, workspace_bytes, stream
            message = self.function(*self.arguments)
            if message:
                self.operator.library.check(message)
            return self.needed.value


class Context:
    """Makes the primary context of devices current, which PyTorch does not do in each thread."""

    def __init__(self):
        self.driver, self.contexts, self.thread = None, {}, threading.local()

    def ensure(self, device):
        done = self.thread.__dict__
        if device in done:
            return
        if self.driver is None:
            self.driver = ctypes.CDLL("libcuda.so.1")
        if device not in self.contexts:
            handle, context = ctypes.c_int(), ctypes.c_void_p()
            self.call("cuDeviceGet", ctypes.byref(handle), device)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self.contexts[device] = context
        self.call("cuCtxSetCurrent", self.contexts[device])
        done[device] = True

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status != 0:
            raise PluginError(f"`{name}` returned the CUDA error {status}")


def function(library, name):
    """Returns a function of a library, or raises LookupError."""
    try:
        return getattr(library, name)
    except AttributeError as error:
        raise LookupError(str(error)) from error


def i32s(values):
    return (ctypes.c_int32 * len(values))(*values)


def i64s(values):
    return (ctypes.c_int64 * len(values))(*values)


# Numbered as nvinfer1::DimensionOperation.
OPERATIONS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    max,
    min,
    lambda a, b: a - b,
    lambda a, b: 1 if a == b else 0,
    lambda a, b: 1 if a < b else 0,
    lambda a, b: a // b,
    lambda a, b: -(-a // b),
]
