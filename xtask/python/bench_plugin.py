"""Python plugins for benchmarks (namespace `python`).

Each launches the kernel of its name through ctypes. Argument lists are those of `tests/rival-plugin`. TensorRT-RTX's
bindings lack decorated functions (`tensorrt.plugin`)."""

import ctypes

import tensorrt_rtx_bindings as trt

THREADS = 256
NUMBERS = 13


class Code:
    """The kernels of a fat binary; empty without a driver."""

    def __init__(self, path):
        self.path, self.library, self.kernels = path, None, {}

    def kernel(self, name):
        if name not in self.kernels:
            cuda = ctypes.CDLL("libcuda.so.1")
            if self.library is None:
                with open(self.path, "rb") as file:
                    image = file.read()
                self.library, self.launch = ctypes.c_void_p(), cuda.cuLaunchKernel
                self.launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
                check(cuda.cuLibraryLoadData(ctypes.byref(self.library), image, None, None, 0, None, None, 0), "cuLibraryLoadData")
            kernel, function = ctypes.c_void_p(), ctypes.c_void_p()
            check(cuda.cuLibraryGetKernel(ctypes.byref(kernel), self.library, name.encode()), "cuLibraryGetKernel")
            check(cuda.cuKernelGetFunction(ctypes.byref(function), kernel), "cuKernelGetFunction")
            check(cuda.cuFuncLoad(function), "cuFuncLoad")
            self.kernels[name] = kernel.value
        return self.kernels[name]


def check(status, call):
    if status != 0:
        raise RuntimeError(f"{call} failed with {status}")


class Plugin(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    def __init__(self, op, code):
        trt.IPluginV3.__init__(self)
        trt.IPluginV3OneCore.__init__(self)
        trt.IPluginV3OneBuild.__init__(self)
        trt.IPluginV3OneRuntime.__init__(self)
        self.op, self.code = op, code
        self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = op[0], "1", "python", 1
        self.shape = None

    def get_capability_interface(self, kind):
        return self

    def clone(self):
        return Plugin(self.op, self.code)

    def get_output_data_types(self, types):
        return [types[0]]

    def get_output_shapes(self, inputs, shape_inputs, builder):
        return [trt.DimsExprs(inputs[0])]

    def supports_format_combination(self, position, tensors, inputs):
        desc = tensors[position].desc
        return desc.type == trt.DataType.FLOAT and desc.format == trt.TensorFormat.LINEAR

    def configure_plugin(self, inputs, outputs):
        pass

    def get_workspace_size(self, inputs, outputs):
        return 0

    def get_valid_tactics(self):
        return []

    def set_tactic(self, tactic):
        pass

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([])

    def attach_to_context(self, context):
        plugin = self.clone()
        plugin.kernel = self.code.kernel(self.op[0])
        return plugin

    def on_shape_change(self, inputs, outputs):
        shape = tuple(inputs[0].dims)
        if shape == self.shape:
            return
        self.shape, count = shape, 1
        for extent in shape:
            count *= extent
        self.kernel = self.code.kernel(self.op[0])
        self.blocks = (count + THREADS - 1) // THREADS
        self.x, self.y = ctypes.c_void_p(), ctypes.c_void_p()
        self.values = [self.x, self.y, ctypes.c_longlong(count)] + [ctypes.c_int(number) for number in range(NUMBERS)]
        used = [self.y] if self.op[1] == 1 else self.values[: self.op[1]]
        self.arguments = (ctypes.c_void_p * len(used))(*[ctypes.addressof(value) for value in used])

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        self.x.value, self.y.value = inputs[0], outputs[0]
        for _ in range(self.op[2]):
            status = self.code.launch(self.kernel, self.blocks, 1, 1, THREADS, 1, 1, 0, stream, self.arguments, None)
            if status != 0:
                return status
        return 0


class Creator(trt.IPluginCreatorV3One):
    def __init__(self, op, code):
        trt.IPluginCreatorV3One.__init__(self)
        self.op, self.code = op, code
        self.name, self.plugin_version, self.plugin_namespace = op[0], "1", "python"
        self.field_names = trt.PluginFieldCollection([])

    def create_plugin(self, name, fields, phase):
        return Plugin(self.op, self.code)


def register(ops, path):
    """Registers a plugin per op (name, number of arguments, launches) and returns the objects to keep alive."""
    code = Code(path)
    creators = [Creator(op, code) for op in ops]
    for creator in creators:
        if not trt.get_plugin_registry().register_creator(creator, "python"):
            raise RuntimeError(f"TensorRT refused the creator of {creator.name}")
    return creators
