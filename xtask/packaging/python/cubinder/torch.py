"""PyTorch operators from plugin libraries.

    import cubinder.torch
    ops = cubinder.torch.load("libmine.so")     # registers torch.ops.mine.add_one
    y = ops.add_one(x)

Each plugin becomes the operator `torch.ops.NAMESPACE.NAME`: inputs in the manifest's order, then attributes by
keyword; outputs as results. It runs the code of the library in the current stream, without TensorRT. If an output
shares an input's memory, the operator copies the input first, and `NAME_` changes the input itself instead of
returning the output. If a size depends on data, a call waits for the GPU. A rejected call raises RuntimeError.

`torch.compile` and `torch.export` see one operator with the manifest's shapes and types. For ONNX:

    torch.onnx.export(model, inputs, dynamo=True, custom_translation_table=ops.onnx_translation_table)
"""

import inspect
import json
import keyword
import math
import pathlib
import re
import struct

import torch

from . import _runtime, installed
from ._runtime import PluginError

__all__ = ["PluginError", "Plugins", "load"]

# TensorRT's numbers (nvinfer1::DataType), by the names of manifests.
TYPES = {"f32": 0, "f16": 1, "i8": 2, "i32": 3, "bool": 4, "u8": 5, "f8": 6, "bf16": 7, "i64": 8, "i4": 9}
DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.int8: "i8",
    torch.int32: "i32",
    torch.bool: "bool",
    torch.uint8: "u8",
    torch.float8_e4m3fn: "f8",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
}
NUMBERS = {dtype: TYPES[name] for dtype, name in DTYPES.items()}
OF_NUMBERS = {number: dtype for dtype, number in NUMBERS.items()}

ONNX_TYPES = {
    "f32": "float",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "f8": "float8e4m3fn",
    "i4": "int4",
}
# Attributes that TensorRT's ONNX parser needs.
ONNX_ATTRIBUTES = {
    "plugin_namespace": "STRING",
    "plugin_version": "STRING",
    "aot": "INT",
    "tensorrt_plugin_shape_input_indices": "INTS",
}

# Calls with equal shapes and attributes reuse a prepared call. Above this, all are forgotten.
MAX_CALLS = 4096

# A tenth of the time of `torch.cuda.current_stream`; PyTorch's compiled code calls it. CPU builds lack it.
raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

CONTEXT = _runtime.Context()

KERNELS = installed("lib/libcubinder_torch.so")
try:
    NATIVE = _runtime.Torch(KERNELS, pathlib.Path(torch.__file__).parent / "lib")
except (OSError, LookupError):
    # No driver, or a PyTorch without these functions: kernels are in Python.
    NATIVE = None

_loaded = {}


def load(library):
    """Registers the plugins of a library, and returns them. Loading a file again returns the same object."""
    path = pathlib.Path(library).resolve()
    if path not in _loaded:
        _loaded[path] = Plugins(path)
    return _loaded[path]


class Plugins:
    """The operators of a library by plugin name, and `onnx_translation_table`."""

    def __init__(self, path):
        described = _runtime.describe(path)
        native = _runtime.Library(path)
        plugins = [_Plugin(native, one) for one in described]
        check(plugins)
        self.names, self.operators, self.onnx_translation_table = [plugin.name for plugin in plugins], {}, {}
        for plugin in plugins:
            plugin.register()
            self.operators |= {name: plugin.packet(name) for name in plugin.schemas}
            self.onnx_translation_table[plugin.packet(plugin.name).default] = plugin.translation()

    def __getattr__(self, name):
        try:
            return self.__dict__["operators"][name]
        except KeyError:
            raise AttributeError(f"this library has no plugin `{name}`; it has {', '.join(self.names)}") from None

    def __dir__(self):
        return [*super().__dir__(), *self.operators]

    def __repr__(self):
        return f"<plugins {', '.join(self.names)}>"


def check(plugins):
    """Fails, before anything is registered, if PyTorch cannot express the plugins."""
    registered = set()
    for plugin in plugins:
        for name, schema in plugin.schemas.items():
            qualified = f"{plugin.namespace}::{name}"
            if qualified in registered:
                raise PluginError(f"the library has several plugins or versions for the operator `{qualified}`; compile them into libraries of their own")
            if hasattr(getattr(torch.ops, plugin.namespace), name):
                raise PluginError(f"the operator `{qualified}` exists already: another loaded library has this plugin")
            registered.add(qualified)
            try:
                torch._C.parse_schema(f"{plugin.namespace}::{schema}")
            except RuntimeError as error:
                raise PluginError(f"PyTorch rejects the schema `{schema}` of {plugin.full_name}: {error}") from error


class _Input:
    def __init__(self, described):
        self.name, self.types = described["name"], described["types"]
        self.has_values, self.is_scalar = "values" in described, described["rank"]["max"] == 0

    def schema(self, mutation):
        if self.has_values:
            return f"{'SymInt' if self.is_scalar else 'SymInt[]'} {self.name}"
        return f"Tensor{mutation} {self.name}"


class _Call:
    """A call with certain shapes, types and attributes, on one device."""

    def __init__(self, plugin, operator, shapes, device):
        self.plugin, self.operator, self.shapes, self.device, self.index = plugin, operator, shapes, device, device.index
        self.native = _runtime.Call(operator, shapes, len(plugin.tensors))
        made = zip(operator.output_shapes(shapes), operator.output_types)
        # `empty_strided` is the fastest function for a new tensor.
        self.outputs = [(shape, strides(shape), OF_NUMBERS[number]) for shape, number in made]
        self.workspace_bytes = 0

    def run(self, tensors, in_place):
        """Launches the kernels, with more workspace if they need it, and returns the results."""
        plugin, device, empty = self.plugin, self.device, torch.empty_strided
        aliases = plugin.aliases if in_place else ()
        outputs = [
            tensors[aliases[i]] if i in aliases else empty(shape, steps, dtype=dtype, device=device)
            for i, (shape, steps, dtype) in enumerate(self.outputs)
        ]
        CONTEXT.ensure(self.index)
        stream = raw_stream(self.index)
        while True:
            # Other threads change it.
            size = self.workspace_bytes
            workspace = torch.empty(size, dtype=torch.uint8, device=device) if size else None
            address = workspace.data_ptr() if size else None
            needed = self.native.run(tensors, outputs, address, size, stream)
            if needed <= size:
                break
            self.workspace_bytes = needed
        if plugin.sizes:
            outputs = self.resized(outputs)
        return plugin.result(outputs, in_place)

    def resized(self, outputs):
        """Waits for the sizes that depend on data, and returns the outputs with their shapes."""
        sizes = [outputs[i].item() if i in self.plugin.sizes else -1 for i in range(len(outputs))]
        shapes = self.operator.output_shapes(self.shapes, sizes)
        return [cut(output, shape) for output, shape in zip(outputs, shapes)]


class _Plugin:
    def __init__(self, native, described):
        self.native, self.calls, self.operators = native, {}, {}
        self.name, self.version, self.domain = described["name"], described["version"], described["namespace"]
        self.namespace = re.sub(r"\W", "_", self.domain) or "cubinder_plugins"
        self.full_name = f"{self.domain}::{self.name}" if self.domain else self.name
        roles = {role: [one for one in described["interface"] if one["role"] == role] for role in ("input", "output", "attribute")}
        self.inputs, self.outputs, self.attributes = [_Input(one) for one in roles["input"]], roles["output"], roles["attribute"]
        self.keys = {one["name"]: key_of(one["types"][0]) for one in self.attributes}
        self.tensors = [i for i, one in enumerate(self.inputs) if not one.has_values]
        self.has_values = len(self.tensors) < len(self.inputs)
        names = [self.inputs[i].name for i in self.tensors]
        # Each output's aliased tensor.
        self.aliases = {i: names.index(out["alias"]) for i, out in enumerate(self.outputs) if "alias" in out}
        self.sizes = [i for i, out in enumerate(self.outputs) if "size" in out]

    @property
    def schemas(self):
        """Returns the schemas of the operators by name; the second changes its inputs."""
        names = [self.name] + ([self.name + "_"] if self.aliases else [])
        return {name: self.schema(name, in_place) for name, in_place in zip(names, (False, True))}

    def packet(self, name):
        return getattr(getattr(torch.ops, self.namespace), name)

    def register(self):
        # Operators exist as long as this object.
        self.library = torch.library.Library(self.namespace, "FRAGMENT")
        for name, schema in self.schemas.items():
            in_place = name != self.name
            self.library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
            # PyTorch dispatches on the tensors' device.
            if not self.implement(name, in_place):
                self.library.impl(name, self.kernel(in_place), "CUDA" if self.tensors else "CompositeExplicitAutograd")
            if self.tensors:
                self.library.impl(name, self.no_kernel, "CPU")
            torch.library.register_fake(f"{self.namespace}::{name}", self.fake(in_place), lib=self.library)

    def implement(self, name, in_place):
        """Implements the operator without Python; returns whether `libcubinder_torch.so` can."""
        kinds = {one["name"]: native_kind(one) for one in self.attributes}
        if NATIVE is None or in_place or self.has_values or self.sizes or not self.tensors or None in kinds.values():
            return False
        plugin = f"{self.full_name}@{self.version}"
        return NATIVE.implement(self.native, plugin, list(kinds.items()), len(self.tensors), len(self.outputs), self.namespace, name)

    def schema(self, name, in_place):
        changed = {self.tensors[tensor] for tensor in self.aliases.values()} if in_place else set()
        mutations = {index: f"({chr(ord('a') + number)}!)" for number, index in enumerate(sorted(changed))}
        parameters = [one.schema(mutations.get(i, "")) for i, one in enumerate(self.inputs)]
        parameters += ["*"] * bool(self.attributes) + [attribute_schema(one) for one in self.attributes]
        results = ["Tensor"] * len(self.returned(in_place))
        result = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return f"{name}({', '.join(parameters)}) -> {result}"

    def returned(self, in_place):
        """Returns the indices of outputs that are results."""
        return [i for i in range(len(self.outputs)) if not (in_place and i in self.aliases)]

    def given(self, attributes):
        """Returns the values that a caller gives, by name; the library knows the defaults."""
        return {name: value for name, value in attributes.items() if value is not None}

    def key(self, attributes):
        """Returns a hashable key, in which 0.0 and -0.0 differ and NaN equals itself."""
        return tuple([(name, self.keys[name](value)) for name, value in attributes.items()])

    def operator(self, device, dtypes, attributes):
        given = self.given(attributes)
        key = (device, dtypes, self.key(given))
        operator = self.operators.get(key)
        if operator is None:
            unknown = [dtype for dtype in dtypes if dtype not in NUMBERS]
            if unknown:
                raise PluginError(f"{self.full_name}: plugins have no type for {unknown[0]}")
            types = [TYPES[one.types[0]] for one in self.inputs]
            for index, dtype in zip(self.tensors, dtypes):
                types[index] = NUMBERS[dtype]
            kinds = {one["name"]: one["types"][0] for one in self.attributes}
            fields = [(name, kinds[name], value) for name, value in given.items()]
            name = f"{self.full_name}@{self.version}"
            operator = _runtime.Operator(self.native, name, fields, types, len(self.outputs))
            if any(number not in OF_NUMBERS for number in operator.output_types):
                raise PluginError(f"{self.full_name}: PyTorch has no type for an output")
            if len(self.operators) >= MAX_CALLS:
                self.operators.clear()
            self.operators[key] = operator
        return operator

    def shapes(self, args):
        """Returns the shapes of inputs, and the values of shape inputs."""
        return [
            arg.shape if not one.has_values else (arg,) if one.is_scalar else tuple(arg)
            for one, arg in zip(self.inputs, args)
        ]

    def result(self, outputs, in_place):
        results = [outputs[i] for i in self.returned(in_place)]
        return (results[0] if len(results) == 1 else tuple(results)) if results else None

    def no_kernel(self, *args, **attributes):
        raise PluginError(f"{self.full_name} runs on CUDA devices only: move its inputs to a GPU, such as `x.cuda()`")

    def fake(self, in_place):
        def fake(*args, **attributes):
            tensors, shapes = [args[i] for i in self.tensors], self.shapes(args)
            operator = self.operator(None, tuple([tensor.dtype for tensor in tensors]), attributes)
            are_known = all(type(extent) is int for shape in shapes for extent in shape)
            # Also checks the shapes.
            found = operator.output_shapes(shapes) if are_known else None
            if found is None or self.sizes:
                size = lambda output: torch.library.get_ctx().new_dynamic_size()
                found = operator.symbolic_shapes(shapes, size, torch.sym_max, torch.sym_min)
            device = tensors[0].device if tensors else torch.device("cuda")
            types = [OF_NUMBERS[number] for number in operator.output_types]
            made = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in zip(found, types)]
            return self.result(made, in_place)

        return fake

    def kernel(self, in_place):
        calls, has_values, has_attributes = self.calls, self.has_values, bool(self.attributes)
        current_device, is_grad_enabled = torch.cuda.current_device, torch.is_grad_enabled

        def kernel(*args, **attributes):
            tensors = [args[i] for i in self.tensors] if has_values else args
            key = (self.key(attributes) if has_attributes else (), *[(tensor.dtype, tensor.shape, tensor.get_device()) for tensor in tensors])
            if has_values:
                key += (current_device(), *self.shapes(args))
            call = calls.get(key) or self.prepare(key, args, tensors, attributes)
            for tensor in tensors:
                if tensor.requires_grad and is_grad_enabled():
                    raise PluginError(f"{self.full_name} has no gradient: call it under `torch.no_grad()`, or detach its inputs")
            for tensor in tensors:
                if not tensor.is_contiguous():
                    tensors = self.contiguous(tensors, in_place)
                    break
            if in_place:
                changed = [tensors[tensor] for tensor in set(self.aliases.values())]
                torch.autograd.graph.increment_version([tensor for tensor in changed if not tensor.is_inference()])
            if call.index == current_device():
                return call.run(tensors, in_place)
            with torch.cuda.device(call.device):
                return call.run(tensors, in_place)

        return kernel

    def prepare(self, key, args, tensors, attributes):
        devices = list(dict.fromkeys(tensor.device for tensor in tensors))
        if len(devices) > 1:
            raise PluginError(f"{self.full_name}: the inputs are on {' and '.join(map(str, devices))}; move them to one device")
        device = devices[0] if devices else torch.device("cuda", torch.cuda.current_device())
        operator = self.operator(device, tuple([tensor.dtype for tensor in tensors]), attributes)
        if len(self.calls) >= MAX_CALLS:
            self.calls.clear()
        call = self.calls[key] = _Call(self, operator, self.shapes(args), device)
        return call

    def contiguous(self, tensors, in_place):
        for tensor in set(self.aliases.values()) if in_place else ():
            if not tensors[tensor].is_contiguous():
                name = self.inputs[self.tensors[tensor]].name
                raise PluginError(f"{self.full_name}_ changes `{name}` in place, which must be contiguous; use {self.full_name}, or `{name}.contiguous()`")
        return [tensor.contiguous() for tensor in tensors]

    def onnx_attributes(self):
        """Returns the kinds of ONNX attributes by name."""
        return {**ONNX_ATTRIBUTES, **{one["name"]: one["onnx"] for one in self.attributes}}

    def onnx_schema(self):
        import onnx

        schema = onnx.defs.OpSchema
        names = {name: f"tensor({onnx_name})" for name, onnx_name in ONNX_TYPES.items()}
        tensors = [(one.name, one.types) for one in self.inputs] + [(one["name"], one["types"]) for one in self.outputs]
        parameters = [schema.FormalParameter(name, f"T{i}") for i, (name, _) in enumerate(tensors)]
        constraints = [(f"T{i}", [names[one] for one in types if one in names], "") for i, (_, types) in enumerate(tensors)]
        kinds = self.onnx_attributes()
        attributes = [schema.Attribute(name, getattr(schema.AttrType, kind), required=False) for name, kind in kinds.items()]
        inputs, outputs = parameters[: len(self.inputs)], parameters[len(self.inputs) :]
        return schema(self.name, self.domain, 1, inputs=inputs, outputs=outputs, type_constraints=constraints, attributes=attributes)

    def translation(self):
        """Returns the function that `torch.onnx.export` calls for the operator."""

        def translate(*args, **attributes):
            return _onnx_node(self, args, attributes)

        names = [one.name for one in self.inputs] + [one["name"] for one in self.attributes]
        translate.__name__ = self.name
        # Without a signature, the exporter warns and passes the arguments on.
        if not any(map(keyword.iskeyword, names)):
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = [inspect.Parameter(one.name, kind) for one in self.inputs]
            for one in self.attributes:
                default = one.get("default", inspect.Parameter.empty)
                parameters.append(inspect.Parameter(one["name"], inspect.Parameter.KEYWORD_ONLY, default=default))
            translate.__signature__ = inspect.Signature(parameters)
        return translate


def cut(output, shape):
    """Returns the first elements as a tensor of a shape; copied if it is much smaller, to free memory."""
    count = math.prod(shape)
    result = output.reshape(-1)[:count].view(shape)
    return result.clone() if 2 * count < output.numel() else result


def strides(shape):
    """Returns the strides of a contiguous tensor."""
    return tuple(math.prod(max(extent, 1) for extent in shape[axis + 1 :]) for axis in range(len(shape)))


def attribute_schema(attribute):
    name, type_name = attribute["name"], attribute["types"][0]
    element = type_name.removesuffix("[]")
    schema = {"bool": "bool", "string": "str", "bytes": "int[]"}.get(element, "float" if element.startswith("f") else "int")
    schema += type_name[len(element) :]
    if "default" not in attribute:
        return f"{schema} {name}"
    default = literal(attribute["default"])
    # PyTorch has no defaults for lists of these, nor for other texts.
    is_none = schema in ("str[]", "bool[]") or not default.isascii() or "\\" in default
    return f"{schema}? {name}=None" if is_none else f"{schema} {name}={default}"


def native_kind(attribute):
    """Returns the type of an attribute for kernels without Python, None if they do not support it."""
    kind = attribute["types"][0]
    # Kernels get defaults as arguments, and round these like ONNX; the library's own are exact.
    if kind.endswith("[]") or kind in ("string", "bytes") or (kind == "f64" and "default" in attribute):
        return None
    return _runtime.INT8 if kind == "bool" else _runtime.FLOAT32 if kind.startswith("f") else _runtime.INT64


def key_of(kind):
    """Returns the function that makes a hashable key of an attribute's value."""
    is_float = kind.startswith("f")
    if kind.endswith("[]"):
        return (lambda value: struct.pack(f"{len(value)}d", *value)) if is_float else tuple
    if kind == "bytes":
        return tuple
    return struct.Struct("d").pack if is_float else lambda value: value


def literal(value):
    """Returns a default as PyTorch's schemas write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _onnx_node(plugin, args, attributes):
    """Returns the ONNX node of a call, with the attributes that TensorRT's parser needs."""
    import onnxscript

    op18 = onnxscript.opset18
    inputs = [_vector(op18, one, arg) if one.has_values else arg for one, arg in zip(plugin.inputs, args)]
    values = plugin.given(attributes)
    for one in plugin.attributes:
        if one["types"] == ["bytes"] and one["name"] in values:
            values[one["name"]] = bytes(values[one["name"]]).decode()
    values |= {"plugin_namespace": plugin.domain, "plugin_version": plugin.version, "aot": 1}
    if plugin.has_values:
        values["tensorrt_plugin_shape_input_indices"] = [i for i, one in enumerate(plugin.inputs) if one.has_values]
    # Without a type, an empty list has integers.
    kinds = plugin.onnx_attributes()
    values = {name: onnxscript.ir.Attr(name, onnxscript.ir.AttributeType[kinds[name]], value) for name, value in values.items()}
    operator = onnxscript.values.Op(onnxscript.values.Opset(plugin.domain, 1), plugin.name, plugin.onnx_schema())
    return operator(*inputs, **values)


def _vector(op18, one, arg):
    """Returns the values of a shape input as a tensor of one dimension, which TensorRT's parser requires."""
    import onnx

    one_element = op18.Constant(value_ints=[1])
    values = [arg] if one.is_scalar else arg
    parts = [op18.Constant(value_ints=[v]) if isinstance(v, int) else op18.Reshape(v, one_element) for v in values]
    joined = parts[0] if len(parts) == 1 else op18.Concat(*parts, axis=0)
    return op18.Cast(joined, to=onnx.TensorProto.INT32) if one.types == ["i32"] else joined
