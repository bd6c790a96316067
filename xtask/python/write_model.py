"""Writes the ONNX models of the demo and of the end-to-end tests.

`chain`: x -> circular padding -> circular padding -> add one -> y, on a batch of images of dynamic size.
"""

import argparse

import onnx
from onnx import TensorProto, helper

TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}


def plugin_node(op, inputs, outputs, name, namespace="sample", **attributes):
    node = helper.make_node(
        op, inputs, outputs, name=name, domain=namespace, plugin_namespace=namespace, plugin_version="1"
    )
    for key, value in attributes.items():
        # The type is said where the value is an empty list, which has none.
        kind = onnx.AttributeProto.INTS if isinstance(value, list) else None
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    return node


def chain(args):
    pad = plugin_node("circ_pad_plugin", ["x"], ["a"], "pad_1", pads=[1, 1, 2, 2], aot=1)
    again = plugin_node("circ_pad_plugin", ["a"], ["b"], "pad_2", pads=[3, 0], aot=1)
    add = plugin_node("elemwise_add_plugin", ["b"], ["y"], "add_1", block_size=256, aot=1)
    return [pad, again, add]


def pad(args):
    return [plugin_node("circ_pad_plugin", ["x"], ["y"], "pad_1", pads=args.pads, aot=1)]


def add(args):
    return [plugin_node("elemwise_add_plugin", ["x"], ["y"], "add_1", block_size=args.block_size, aot=1)]


def reference(args):
    """The plugin that is written by hand in C++."""
    return [plugin_node("CircPadReference", ["x"], ["y"], "pad_1", namespace="reference", pads=args.pads)]


def vectors(args):
    """A plugin that chooses among its variants by shapes and addresses."""
    return [plugin_node("vectors_plugin", ["x"], ["y"], "vectors_1", namespace="test", aot=1)]


NETWORKS = {"chain": chain, "pad": pad, "add": add, "reference": reference, "vectors": vectors}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--network", choices=NETWORKS, default="chain")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--shape", default="batch,3,height,width", help="extents; a name is a dynamic one")
    parser.add_argument("--pads", type=lambda text: [int(n) for n in text.split(",") if n], default=[1, 1, 1, 1])
    parser.add_argument("--block-size", type=int, default=256)
    args = parser.parse_args()
    shape = [int(part) if part.isdigit() else part for part in args.shape.split(",") if part]
    out = [None] * len(shape)
    nodes = NETWORKS[args.network](args)
    graph = helper.make_graph(
        nodes,
        args.network,
        [helper.make_tensor_value_info("x", TYPES[args.type], shape)],
        [helper.make_tensor_value_info("y", TYPES[args.type], out)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(nodes[0].domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, args.output)


if __name__ == "__main__":
    main()
