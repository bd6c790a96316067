"""Builds an engine from an ONNX model with TensorRT-RTX's own Python bindings. No GPU is needed.

A client of plugin libraries like any other: it knows nothing of Cubinder. Prints one JSON object.
"""

import argparse
import json
import os
import sys

import tensorrt_rtx_bindings as trt


class Log(trt.ILogger):
    """Collects TensorRT's log and prints warnings and errors."""

    def __init__(self, verbose):
        trt.ILogger.__init__(self)
        self.lines = []
        self.verbose = verbose

    def log(self, severity, text):
        self.lines.append([severity.name, text])
        if self.verbose or severity.value <= trt.ILogger.Severity.WARNING.value:
            print(f"[{severity.name}] {text}", file=sys.stderr)


def add_profiles(builder, config, network, profiles):
    """Adds an optimization profile for each `--profile name=min:opt:max ...`, of shapes or of shape input values."""
    inputs = [network.get_input(i) for i in range(network.num_inputs)]
    shape_inputs = {tensor.name for tensor in inputs if tensor.is_shape_tensor}
    for texts in profiles:
        entry = builder.create_optimization_profile()
        for text in texts:
            name, ranges = text.split("=")
            low, best, high = ([int(n) for n in part.split("x") if n] for part in ranges.split(":"))
            (entry.set_shape_input if name in shape_inputs else entry.set_shape)(name, low, best, high)
        config.add_optimization_profile(entry)


def build(args, log):
    registry = trt.get_plugin_registry()
    for library in args.plugins:
        if registry.load_library(os.path.abspath(library)) is None:
            raise SystemExit(f"error: TensorRT refused the plugin library {library}")
    builder = trt.Builder(log)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    with open(args.onnx, "rb") as file:
        if not parser.parse(file.read()):
            errors = "; ".join(parser.get_error(i).desc() for i in range(parser.num_errors))
            raise SystemExit(f"error: TensorRT's ONNX parser refused {args.onnx}: {errors}")
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(getattr(trt.ComputeCapability, args.compute_capability), 0)
    if args.serialize_plugin:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
        config.set_flag(trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
        config.plugins_to_serialize = [os.path.abspath(path) for path in args.serialize_plugin]
    if args.aliased:
        config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
    add_profiles(builder, config, network, args.profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit(f"error: TensorRT did not build an engine from {args.onnx}")
    data = bytes(plan)
    with open(args.output, "wb") as file:
        file.write(data)
    return {
        "tensorrt_rtx": trt.__version__,
        "onnx": args.onnx,
        "plan": args.output,
        "plan_bytes": len(data),
        "compute_capability": args.compute_capability,
        "outputs": [
            [network.get_output(i).name, list(network.get_output(i).shape)] for i in range(network.num_outputs)
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onnx", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--plugins", nargs="+", default=[], help="plugin libraries to load, in order")
    parser.add_argument("--serialize-plugin", nargs="*", default=[], help="libraries to put into the plan")
    parser.add_argument("--profile", nargs="+", action="append", default=[], help="name=MINxMIN:OPTxOPT:MAXxMAX for each input")
    parser.add_argument("--aliased", action="store_true", help="allow plugins whose outputs share memory with inputs")
    parser.add_argument("--compute-capability", default="SM89")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    log = Log(args.verbose)
    result = build(args, log)
    result["warnings"] = [text for severity, text in log.lines if severity in ("WARNING", "ERROR")]
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
