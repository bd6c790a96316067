"""Tests `cubinder`'s output with releases of NVIDIA's libraries, for `cargo xtask matrix`, without a GPU.

    python3 matrix.py ptx libnvrtc.so.13
    python3 matrix.py tensorrt libplugins.so

Independent of Cubinder; the library has the plugin `elemwise_add_plugin`. Prints a JSON object."""

import ctypes
import glob
import json
import os
import sys


def ptx(path):
    """Returns the PTX version of an NVRTC."""
    # NVRTC opens it by bare name, which finds a loaded library.
    for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*")):
        ctypes.CDLL(builtins)
    nvrtc = ctypes.CDLL(path)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = b'extern "C" __global__ void k(float* x) { *x = 1; }'
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_80")
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 0, None, None)
    code = code or nvrtc.nvrtcCompileProgram(program, 1, options)
    code = code or nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    code = code or nvrtc.nvrtcGetPTX(program, text)
    if code:
        raise SystemExit(f"error: NVRTC returned {code}")
    lines = (line.split() for line in text.value.decode().splitlines())
    return {"ptx": next(words[1] for words in lines if words[:1] == [".version"])}


def model(namespace):
    """Builds an ONNX model of one plugin node."""
    from onnx import TensorProto, helper

    def tensor(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4])

    node = helper.make_node(
        "elemwise_add_plugin",
        ["x"],
        ["y"],
        domain=namespace,
        plugin_namespace=namespace,
        plugin_version="1",
        block_size=256,
    )
    graph = helper.make_graph([node], "graph", [tensor("x")], [tensor("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(namespace, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def tensorrt(path):
    """Returns the steps from a plugin library to an engine that TensorRT-RTX accepts, and the log of the first
    rejection."""
    import tensorrt_rtx_bindings as trt

    class Log(trt.ILogger):
        lines = []

        def log(self, severity, text):
            if severity.value <= trt.ILogger.Severity.ERROR.value:
                self.lines.append(text)

    log = Log()
    builder = trt.Builder(log)
    registry = trt.get_plugin_registry()
    found = {"version": trt.__version__, "library": registry.load_library(path) is not None}
    creators = {creator.name: creator for creator in registry.all_creators}
    creator = creators.get("elemwise_add_plugin")
    found["creator"] = creator is not None
    if creator is None:
        return found
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    found["parsed"] = parser.parse(model(creator.plugin_namespace))
    if not found["parsed"]:
        found["refusal"] = parser.get_error(0).desc()
        found["log"] = log.lines
        return found
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    plan = builder.build_serialized_network(network, config)
    found["built"] = plan is not None
    if plan is None:
        found["refusal"] = log.lines[-1] if log.lines else ""
    return found


if __name__ == "__main__":
    print(json.dumps({"ptx": ptx, "tensorrt": tensorrt}[sys.argv[1]](sys.argv[2])))
