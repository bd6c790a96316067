"""Writes the ONNX model of a network of `networks.py`.

    python3 write_model.py OUTPUT --network chain --type f32 --shape batch,3,height,width [--set pads=[1,1]]

Every input has this shape. A name instead of an extent makes the dimension dynamic.
"""

import argparse

import networks
import onnx
from onnx import TensorProto, helper

TYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "f8": TensorProto.FLOAT8E4M3FN,
    "i8": TensorProto.INT8,
    "i4": TensorProto.INT4,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}


def plugin_node(op, inputs, outputs, attributes, namespace, name):
    node = helper.make_node(
        op, inputs, outputs, name=name, domain=namespace, plugin_namespace=namespace, plugin_version="1"
    )
    for key, value in attributes.items():
        # An empty list has no element type.
        kind = onnx.AttributeProto.INTS if isinstance(value, list) else None
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    return node


def write(output, network, settings, types, shape, name):
    """Writes a network's model: `types` of tensors by name, `shape` of every input as on the command line."""
    shape = [int(part) if part.isdigit() else part for part in shape.split(",") if part]
    nodes = [
        plugin_node(op, inputs, outputs, attributes, network.namespace, f"{op.rstrip('_')}_{number}")
        for number, (op, inputs, outputs, attributes) in enumerate(network.nodes(settings), 1)
    ]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(name, TYPES[types[name]], network.shape_inputs.get(name, shape)) for name in network.inputs],
        [helper.make_tensor_value_info(name, TYPES[types[name]], [None] * network.ranks.get(name, len(shape))) for name in network.outputs],
        [helper.make_tensor(name, TYPES[ty], values.shape, values) for name, (ty, values) in network.constants.items()],
    )
    # Format versions that support all types above.
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(network.namespace, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--shape", default="batch,3,height,width")
    networks.add_options(parser)
    args = parser.parse_args()
    network, settings, types = networks.chosen(args.network, args.type, dict(args.set))
    write(args.output, network, settings, types, args.shape, args.network)


if __name__ == "__main__":
    main()
