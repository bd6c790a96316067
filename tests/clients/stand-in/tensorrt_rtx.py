"""A stand-in for TensorRT-RTX's bindings. Its engines start with a line of JSON, and compute in the memory of the stand-in driver."""

import ctypes
import enum
import json
import os

__version__ = "1.7.1.116"

TYPES = {"FLOAT": "<f4", "HALF": "<f2", "INT32": "<i4", "INT64": "<i8", "INT8": "|i1", "BOOL": "|b1", "FP4": "|u1"}

FUNCTIONS = {
    "scale": lambda x: {"y": x * x.dtype.type(2)},
    "wrong": lambda x: {"y": x * 2 + (x == x.max()) * 0.25},
    "positive": lambda x: {"y": x[x > 0]},
    "resize": lambda x, size: {"y": x.repeat(size[0], axis=0)},
    "two": lambda x: {"y": x * 2, "n": x.astype("i4")},
}

Mode = enum.Enum("TensorIOMode", "INPUT OUTPUT")
TensorIOMode, TensorLocation = Mode, enum.Enum("TensorLocation", "DEVICE HOST")


class ILogger:
    Severity = enum.IntEnum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE", start=0)


class IOutputAllocator:
    pass


class Registry:
    loaded = []

    def load_library(self, path):
        if not os.path.isabs(path) or not os.path.isfile(path):
            return None
        self.loaded.append(os.path.basename(path))
        return path


def get_plugin_registry():
    return Registry()


class Runtime:
    engine_host_code_allowed = False

    def __init__(self, log):
        self.log = log

    def deserialize_cuda_engine(self, plan):
        error = ILogger.Severity.ERROR
        if not plan.startswith(b"{"):
            self.log.log(error, "Error Code 1: Serialization (Serialization assertion header.magicTag == kEXPECTED_MAGIC_TAG failed.)")
            return None
        engine = json.loads(plan.split(b"\n")[0])
        self.log.log(ILogger.Severity.INFO, f"host code: {self.engine_host_code_allowed}")
        missing = [name for name in engine["needs"] if name not in Registry.loaded]
        if missing:
            self.log.log(error, f"Cannot find plugin: {missing[0]}")
            return None
        if "warning" in engine:
            self.log.log(ILogger.Severity.WARNING, engine["warning"])
        return Engine(engine, self.log)


class Engine:
    def __init__(self, engine, log):
        self.function, self.log, self.runs = FUNCTIONS[engine["function"]], log, engine.get("runs", 1 << 30)
        self.tensors = {tensor["name"]: tensor for tensor in engine["tensors"]}
        self.num_io_tensors = len(self.tensors)

    def get_tensor_name(self, number):
        return list(self.tensors)[number]

    def get_tensor_mode(self, name):
        return Mode[self.tensors[name]["mode"]]

    def get_tensor_location(self, name):
        return TensorLocation[self.tensors[name].get("location", "DEVICE")]

    def get_tensor_dtype(self, name):
        return enum.Enum("DataType", self.tensors[name]["type"])[self.tensors[name]["type"]]

    def get_tensor_format(self, name):
        found = self.tensors[name].get("format", "LINEAR")
        return enum.Enum("TensorFormat", found)[found]

    def get_tensor_shape(self, name):
        return self.tensors[name]["shape"]

    def get_tensor_profile_shape(self, name, profile):
        return self.tensors[name].get("profile", [self.tensors[name]["shape"]] * 3)

    def get_tensor_profile_values(self, profile, name):
        return self.tensors[name].get("values")

    def create_execution_context(self):
        return Context(self)


class Context:
    def __init__(self, engine):
        self.engine = engine
        self.shapes, self.addresses, self.allocators = {}, {}, {}

    def set_input_shape(self, name, shape):
        self.shapes[name] = shape
        return True

    def set_tensor_address(self, name, address):
        self.addresses[name] = address
        return address != 0

    def set_output_allocator(self, name, allocator):
        self.allocators[name] = allocator
        return True

    def infer_shapes(self):
        return [name for name in self.engine.tensors if self.is_input(name) and name not in self.addresses]

    def is_input(self, name):
        return self.engine.get_tensor_mode(name) == Mode.INPUT

    def get_tensor_shape(self, name):
        tensor = self.engine.tensors[name]
        if self.is_input(name):
            return self.shapes.get(name, tensor["shape"])
        if "like" in tensor:
            shape = list(self.get_tensor_shape(tensor["like"]))
            return [shape[0] * int(self.array("size")[0]), *shape[1:]] if "size" in self.engine.tensors else shape
        return tensor["shape"]

    def array(self, name):
        import numpy

        shape, dtype = self.get_tensor_shape(name), numpy.dtype(TYPES[self.engine.tensors[name]["type"]])
        data = ctypes.string_at(self.addresses[name], int(numpy.prod(shape, dtype=int)) * dtype.itemsize)
        return numpy.frombuffer(data, dtype).reshape(shape)

    def execute_async_v3(self, stream):
        self.engine.runs -= 1
        if self.engine.runs < 0:
            self.engine.log.log(ILogger.Severity.ERROR, "operation not permitted when stream is capturing")
            return False
        inputs = {name: self.array(name) for name in self.engine.tensors if self.is_input(name)}
        for name, value in self.engine.function(**inputs).items():
            data = value.astype(TYPES[self.engine.tensors[name]["type"]]).tobytes()
            if name in self.allocators:
                allocator = self.allocators[name]
                self.addresses[name] = allocator.reallocate_output_async(name, 0, len(data), 256, stream)
                allocator.notify_shape(name, value.shape)
            ctypes.memmove(self.addresses[name], data, len(data))
        return True
