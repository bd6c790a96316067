"""Builds an engine with TensorRT's Python bindings, for `cubinder build`. Knows nothing of Cubinder.

Prints one JSON object per line: log lines, steps, and the result.

    builder.py find MODULE...       where the modules are, without importing them
    builder.py load MODULE          whether the module can be imported
    builder.py build --module MODULE --onnx FILE --save FILE ...
"""

import argparse
import importlib.util
import os
import pathlib
import re
import sys
import time

from client import emit, leave, load, load_plugins, logger, stop


def find(modules):
    found = []
    for module in modules:
        spec = importlib.util.find_spec(module)
        # Folders without code are modules without a file.
        if spec is None or not spec.has_location:
            continue
        text = pathlib.Path(spec.origin).read_text(encoding="utf-8", errors="replace")
        version = re.search(r"^__version__ = [\"'](.+)[\"']", text, re.MULTILINE)
        found.append({"module": module, "folder": os.path.dirname(spec.origin), "version": version and version[1]})
    emit("found", python=sys.version.split()[0], modules=found)


def monitor(trt):
    """Reports at most ten steps per second."""

    class Monitor(trt.IProgressMonitor):
        def __init__(self):
            trt.IProgressMonitor.__init__(self)
            self.steps = {}
            self.last = 0.0

        def phase_start(self, name, parent, steps):
            self.steps[name] = steps

        def step_complete(self, name, step):
            if time.monotonic() - self.last > 0.1:
                self.last = time.monotonic()
                emit("step", name=name, step=step + 1, steps=self.steps.get(name, 0))
            return True

        def phase_finish(self, name):
            pass

    return Monitor()


def member(owner, name, what):
    if not hasattr(owner, name):
        names = sorted(name for name in dir(owner) if name.isupper() or name.startswith("SM"))
        stop("missing", what, ", ".join(names))
    return getattr(owner, name)


def ranges(text):
    name, parts = text.rsplit("=", 1)
    return (name, *([int(extent) for extent in part.split("x") if extent] for part in parts.split(":")))


def add_profile(builder, config, network, args):
    if not args.shape and not args.values:
        return
    profile = builder.create_optimization_profile()
    for texts, give in (args.shape, profile.set_shape), (args.values, profile.set_shape_input):
        for text in texts:
            try:
                give(*ranges(text))
            except (TypeError, ValueError, RuntimeError) as error:
                stop("shape", f"{text}: {error}")
    if config.add_optimization_profile(profile) < 0:
        stop("shape", "TensorRT rejected the optimization profile")


def configure(trt, config, args):
    for index, name in enumerate(args.gpu):
        config.num_compute_capabilities = len(args.gpu)
        config.set_compute_capability(member(trt.ComputeCapability, name, name), index)
    for name in args.flag:
        config.set_flag(member(trt.BuilderFlag, name, name))
    if args.serialize:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
        config.set_flag(trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
        config.plugins_to_serialize = args.serialize
    if args.aliased:
        config.set_preview_feature(member(trt.PreviewFeature, "ALIASED_PLUGIN_IO_10_03", "aliased outputs"), True)
    if args.timing_cache:
        path = pathlib.Path(args.timing_cache)
        cache = config.create_timing_cache(path.read_bytes() if path.exists() else b"")
        if cache is None or not config.set_timing_cache(cache, False):
            stop("timing cache", f"TensorRT rejected the timing cache {path}")


def save_timing_cache(config, path):
    draft = f"{path}.{os.getpid()}"
    with open(draft, "wb") as file:
        file.write(config.get_timing_cache().serialize())
    os.replace(draft, path)


def build(args):
    trt = load(args.module)
    log = logger(trt, args.verbose)
    try:
        builder = trt.Builder(log)
    except TypeError:
        # The constructor returned null.
        stop("builder", "TensorRT could not create a builder")
    load_plugins(trt, log, args.plugin)
    flags = getattr(trt, "NetworkDefinitionCreationFlag", None)
    explicit = 1 << int(flags.EXPLICIT_BATCH) if hasattr(flags, "EXPLICIT_BATCH") else 0
    network = builder.create_network(explicit)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(args.onnx):
        stop("parse", *(parser.get_error(i).desc() for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    if hasattr(trt, "IProgressMonitor"):
        config.progress_monitor = monitor(trt)
    configure(trt, config, args)
    add_profile(builder, config, network, args)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        stop("build")
    try:
        with open(args.save, "wb") as file:
            file.write(plan)
        if args.timing_cache:
            save_timing_cache(config, args.timing_cache)
    except OSError as error:
        stop("write", str(error))
    outputs = [network.get_output(i) for i in range(network.num_outputs)]
    emit("built", outputs=[[out.name, list(out.shape)] for out in outputs])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("find").add_argument("modules", nargs="+")
    commands.add_parser("load").add_argument("module")
    one = commands.add_parser("build")
    for option in ("--module", "--onnx", "--save"):
        one.add_argument(option, required=True)
    for option in ("--plugin", "--serialize", "--shape", "--values", "--gpu", "--flag"):
        one.add_argument(option, action="append", default=[])
    one.add_argument("--timing-cache")
    one.add_argument("--aliased", action="store_true")
    one.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    if args.command == "find":
        find(args.modules)
    elif args.command == "load":
        load(args.module)
        emit("loaded")
    else:
        build(args)
    leave(0)


main()
