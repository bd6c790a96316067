"""Measures how TensorRT-RTX builds an engine of a chain of nodes: time, size, memory. No GPU is needed.

    python3 bench_build.py OUTPUT --nodes 100 --ops OPS.json --namespace bench [--libraries LIB...] [--serialize LIB...] [--code FATBIN]

OPS.json is a list of [name, arguments, launches]. The nodes cycle through the ops. In the namespace `python` they are the classes of `bench_plugin.py`, with
the kernels of `--code`. Prints one JSON object: milliseconds of parsing and of building, bytes of the plan, megabytes.
"""

import argparse
import json
import os
import resource
import time

import tensorrt_rtx_bindings as trt
from onnx import TensorProto, helper

SHAPE = [4, 256]


def model(ops, nodes, namespace):
    tensors = ["x"] + [f"t{number}" for number in range(1, nodes)] + ["y"]
    chain = [
        helper.make_node(
            ops[number % len(ops)][0], [tensors[number]], [tensors[number + 1]], name=f"n{number:04}", domain=namespace,
            plugin_namespace=namespace, plugin_version="1",
        )
        for number in range(nodes)
    ]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)  # noqa: E731
    graph = helper.make_graph(chain, "chain", [value("x")], [value("y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(namespace, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)

    def log(self, severity, text):
        if severity.value <= trt.ILogger.Severity.ERROR.value:
            print(f"[{severity.name}] {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--ops", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--libraries", nargs="*", default=[])
    parser.add_argument("--serialize", nargs="*", default=[])
    parser.add_argument("--code")
    args = parser.parse_args()
    with open(args.ops) as file:
        ops = json.load(file)
    data = model(ops, args.nodes, args.namespace)
    log = Log()
    for library in args.libraries:
        if trt.get_plugin_registry().load_library(os.path.abspath(library)) is None:
            raise SystemExit(f"error: TensorRT refused the plugin library {library}")
    kept = []
    if args.namespace == "python":
        import bench_plugin

        kept = bench_plugin.register(ops, args.code)
    start = time.perf_counter()
    builder = trt.Builder(log)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse(data):
        raise SystemExit("error: " + "; ".join(parser.get_error(i).desc() for i in range(parser.num_errors)))
    parsed = time.perf_counter()
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    if args.serialize:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
        config.set_flag(trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
        config.plugins_to_serialize = [os.path.abspath(path) for path in args.serialize]
    plan = builder.build_serialized_network(network, config)
    built = time.perf_counter()
    if plan is None:
        raise SystemExit("error: TensorRT did not build an engine")
    plan = bytes(plan)
    with open(args.output, "wb") as file:
        file.write(plan)
    result = {
        "parse_ms": (parsed - start) * 1e3,
        "build_ms": (built - parsed) * 1e3,
        "plan_bytes": len(plan),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "creators": len(kept),
    }
    print(json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
