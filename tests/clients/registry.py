"""A minimal TensorRT-RTX application, independent of Cubinder, without a GPU.

    python3 registry.py < steps.json

Reads a JSON list of steps: `do` names a method below, other members are its arguments. Prints a JSON list of answers in
one line, each with TensorRT's log lines of its step."""

import json
import os
import sys

import onnx
import tensorrt_rtx_bindings as trt
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../xtask/python"))
import networks  # noqa: E402
import write_model  # noqa: E402

TYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
}


class Log(trt.ILogger):
    """Collects TensorRT's log."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, text):
        self.lines.append([severity.name, text])


class Application:
    def __init__(self):
        self.log = Log()
        self.builder = trt.Builder(self.log)
        self.registry = trt.get_plugin_registry()
        self.handles = {}

    def load(self, path):
        """Loads a library; returns whether the registry accepted it."""
        handle = self.registry.load_library(path)
        if handle is not None:
            self.handles[path] = handle
        return {"ok": handle is not None}

    def unload(self, path):
        self.registry.deregister_library(self.handles.pop(path))
        return {}

    def creators(self):
        """Returns every registered creator as namespace::name version."""
        names = [f"{c.plugin_namespace}::{c.name} {c.plugin_version}" for c in self.registry.all_creators]
        return {"creators": sorted(names)}

    def mapped(self, part):
        """Returns the mappings of this process whose path contains `part`."""
        with open("/proc/self/maps") as maps:
            return {"mappings": [line.strip() for line in maps if part in line]}

    def model(self, path, nodes, type="f32", shape=(4, 4)):
        """Writes an ONNX chain of `nodes` from x to y, each [op, name, attributes]. {"tensor": type, "values": [...]}
        is a TENSOR."""
        made = []
        names = ["x", *(f"t{i}" for i in range(1, len(nodes))), "y"]
        for i, (op, name, attributes) in enumerate(nodes):
            node = helper.make_node(
                op, [names[i]], [names[i + 1]], name=name, domain="sample", plugin_namespace="sample", plugin_version="1"
            )
            for key, value in attributes.items():
                # An empty list has no element type.
                kind = onnx.AttributeProto.INTS if value == [] else None
                if isinstance(value, dict):
                    element = getattr(TensorProto, value["tensor"])
                    value = helper.make_tensor(key, element, [len(value["values"])], value["values"])
                node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
            made.append(node)
        graph = helper.make_graph(
            made,
            "graph",
            [helper.make_tensor_value_info("x", TYPES[type], shape)],
            [helper.make_tensor_value_info("y", TYPES[type], [None] * len(shape))],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        return {}

    def network(self, path, inputs, nodes, outputs):
        """Writes an ONNX model: `inputs` and `outputs` are [name, type, shape], `nodes` are [op, inputs, outputs,
        attributes] of the domain `sample`. The op `Constant` is ONNX's."""
        made = []
        for op, names, results, attributes in nodes:
            if op == "Constant":
                tensor = helper.make_tensor(results[0], TYPES[attributes["type"]], attributes["shape"], attributes["values"])
                made.append(helper.make_node(op, names, results, name=results[0], value=tensor))
                continue
            node = helper.make_node(
                op, names, results, name=results[0], domain="sample", plugin_namespace="sample", plugin_version="1"
            )
            node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
            made.append(node)
        tensors = [
            [helper.make_tensor_value_info(name, TYPES[kind], shape) for name, kind, shape in list]
            for list in (inputs, outputs)
        ]
        graph = helper.make_graph(made, "graph", *tensors)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        return {}

    def shapes(self, op, attributes, inputs, outputs):
        """Returns the output shapes of a model of one node with `inputs`, each [name, shape]."""
        names = [f"o{i}" for i in range(outputs)]
        node = helper.make_node(
            op, [name for name, _ in inputs], names, name=op, domain="sample", plugin_namespace="sample", plugin_version="1"
        )
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        graph = helper.make_graph(
            [node],
            "graph",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        network = self.builder.create_network(0)
        if not trt.OnnxParser(network, self.log).parse(model):
            return {"ok": False}
        return {"ok": True, "shapes": [list(network.get_output(i).shape) for i in range(outputs)]}

    def parse(self, onnx):
        """Returns name, type and shape of a model's outputs."""
        made = self._network(onnx)
        if made is None:
            return {"ok": False}
        network, _ = made
        found = [network.get_output(i) for i in range(network.num_outputs)]
        return {"ok": True, "outputs": [[one.name, one.dtype.name, list(one.shape)] for one in found]}

    def supports(self, names):
        """Returns the operators that the parser supports natively."""
        parser = trt.OnnxParser(self.builder.create_network(0), self.log)
        return {"names": [name for name in names if parser.supports_operator(name)]}

    def build(self, onnx, output=None, profile=None, profiles=(), serialize=(), aliases=False):
        """Builds an engine; profiles are min, opt and max shapes, or {"values": [...]}."""
        made = self._network(onnx)
        if made is None:
            return {"ok": False}
        config = self._config(serialize)
        if profile:
            entry = self.builder.create_optimization_profile()
            entry.set_shape("x", *profile)
            config.add_optimization_profile(entry)
        for described in profiles:
            entry = self.builder.create_optimization_profile()
            for name, shapes in described.items():
                if isinstance(shapes, dict):
                    entry.set_shape_input(name, *shapes["values"])
                else:
                    entry.set_shape(name, *shapes)
            config.add_optimization_profile(entry)
        if aliases:
            config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
        network, _ = made
        plan = self.builder.build_serialized_network(network, config)
        if plan is None:
            return {"ok": False}
        if output:
            with open(output, "wb") as file:
                file.write(bytes(plan))
        shape = list(network.get_output(0).shape)
        return {"ok": True, "shape": shape, "bytes": plan.nbytes}

    def named_network(self, path, network, type, shape, set):
        """Writes the ONNX model of a network of `networks.py`."""
        found, settings, types = networks.chosen(network, type, set)
        write_model.write(path, found, settings, types, shape, network)
        return {}

    def build_network(self, onnx, output, network, profiles, serialize=()):
        """Each profile is `MIN:OPT:MAX` for every input."""
        found = networks.NETWORKS[network]
        made = self._network(onnx)
        if made is None:
            return {"ok": False}
        config = self._config(serialize)
        if found.aliases:
            config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
        for text in profiles:
            entry = self.builder.create_optimization_profile()
            for name in found.inputs:
                entry.set_shape(name, *([int(n) for n in part.split("x")] for part in text.split(":")))
            config.add_optimization_profile(entry)
        plan = self.builder.build_serialized_network(made[0], config)
        if plan is None:
            return {"ok": False}
        with open(output, "wb") as file:
            file.write(bytes(plan))
        return {"ok": True, "bytes": plan.nbytes}

    def _config(self, serialize):
        config = self.builder.create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
        if serialize:
            config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
            config.set_flag(trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
            config.plugins_to_serialize = list(serialize)
        return config

    def _network(self, path):
        """Returns the network and its parser, which must outlive it; None if the parser rejects the model."""
        network = self.builder.create_network(0)
        # TensorRT numbers unnamed networks, also in the plan.
        network.name = "graph"
        parser = trt.OnnxParser(network, self.log)
        with open(path, "rb") as file:
            parsed = parser.parse(file.read())
        return (network, parser) if parsed else None


def main():
    application = Application()
    answers = []
    for step in json.load(sys.stdin):
        start = len(application.log.lines)
        answer = getattr(application, step.pop("do"))(**step)
        answers.append({**answer, "log": application.log.lines[start:]})
    print(json.dumps(answers))
    sys.stdout.flush()
    # Interpreter exit would destroy the builder after unloading TensorRT.
    os._exit(0)


if __name__ == "__main__":
    main()
