"""Writes random models: NAME.onnx with plugin nodes, and NAME.inferred.onnx from `onnx.shape_inference` of a twin with
standard operators.

    python3 onnx_random.py FOLDER COUNT SEED

Prints the number of nodes per operator as JSON."""

import collections
import json
import os
import random
import sys

import onnx
from onnx import TensorProto, helper

FLOATS = [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE]
LIKE = "Relu Sigmoid Tanh Exp Sqrt Neg Abs Softmax LogSoftmax Erf Elu HardSwish Softplus Identity Floor Celu".split()
BROADCAST = "Add Sub Mul Div Pow Max Min Mean Sum Equal Greater LessOrEqual".split()
REDUCE = "ReduceSum ReduceMean ReduceMax ReduceL2 ReduceProd ReduceLogSumExp".split()


class Maker:
    """A model that grows by one node at a time; skips nodes that ONNX rejects."""

    def __init__(self, rng):
        self.rng = rng
        self.opset = rng.choice([13, 17, 18, 19, 21, 23, 24])
        self.nodes, self.twins, self.initializers, self.inputs = [], [], [], []
        self.known = {}
        for index in range(rng.randint(1, 3)):
            shape = [rng.choice([1, 2, 3, 4, 5, 6, 8, "n"]) for _ in range(rng.choice([1, 2, 3, 4, 4]))]
            value = helper.make_tensor_value_info(f"x{index}", rng.choice(FLOATS[:2]), shape)
            self.inputs.append(value)
            self.known[value.name] = value
        self.count = 0

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def integers(self, values, dims=None, type=TensorProto.INT64):
        name = self.name()
        dims = [len(values)] if dims is None else dims
        self.initializers.append(helper.make_tensor(name, type, dims, values))
        return name

    def model(self, nodes, values=()):
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("sample", 1)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output if name]
        graph = helper.make_graph(nodes, "random", self.inputs, outputs, self.initializers, value_info=values)
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def add(self, node, twin=None):
        twin = twin or node
        before = self.twins + [twin]
        try:
            found = onnx.shape_inference.infer_shapes(self.model(before), strict_mode=True, data_prop=True)
        except Exception:
            return False
        values = {value.name: value for value in [*found.graph.value_info, *found.graph.output]}
        made = [values[name].type for name in twin.output if name in values]
        # ONNX accepts some negative extents.
        extents = [dim.dim_value for type in made for dim in type.tensor_type.shape.dim]
        if not all(type.HasField("tensor_type") for type in made) or min(extents, default=0) < 0:
            return False
        self.nodes.append(node)
        self.twins.append(twin)
        for name in twin.output:
            if name in values:
                self.known[name] = values[name]
        return True

    def dims(self, name):
        kind = self.known[name].type.tensor_type
        if not kind.HasField("shape"):
            return None
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]

    def type(self, name):
        return self.known[name].type.tensor_type.elem_type

    def pick(self, wanted=lambda type, dims: True):
        names = [n for n in self.known if (d := self.dims(n)) is not None and wanted(self.type(n), d)]
        # For longer chains.
        names = names[-4:] + names
        return self.rng.choice(names) if names else None


def is_float(type, dims):
    return type in FLOATS


def is_list(type, dims):
    return type in (TensorProto.INT64, TensorProto.INT32) and len(dims) == 1


def axis(rng, rank):
    return rng.randint(-rank, rank - 1) if rank else 0


def steps(m):
    """Adds one random node; returns false if no operator fits."""
    rng, make = m.rng, helper.make_node
    x = m.pick(is_float)
    if x is None:
        return False
    dims = m.dims(x)
    rank = len(dims)
    y = m.name()

    def node(op, inputs, outputs=None, **more):
        if None in inputs or any(value == [] for value in more.values()):
            return False
        return m.add(make(op, inputs, outputs or [y], **more))

    def like():
        return node(rng.choice(LIKE), [x])

    def broadcast():
        op = rng.choice(BROADCAST)
        other = m.pick(lambda type, dims: type == m.type(x))
        return node(op, rng.choice([[x, other], [other, x]]))

    def where():
        other = m.pick(lambda type, dims: type == m.type(x))
        chosen = m.pick(lambda type, dims: type == TensorProto.BOOL)
        return chosen is not None and node("Where", [chosen, x, other])

    def cast():
        source = m.pick()
        return node("Cast", [source], to=rng.choice([1, 6, 7, 10, 11, 16, 9, 3]))

    def matmul():
        other = m.pick(lambda type, dims: type == m.type(x) and len(dims) >= 1)
        if rng.random() < 0.6 and rank >= 1 and dims[-1]:
            other = m.name()
            m.initializers.append(constant(other, m.type(x), [dims[-1], rng.randint(1, 4)]))
        if rng.random() < 0.3 and rank == 2 and dims[-1]:
            other = m.name()
            turned = rng.randint(0, 1)
            shape = [dims[-1], rng.randint(1, 4)]
            m.initializers.append(constant(other, m.type(x), shape[::-1] if turned else shape))
            return node("Gemm", [x, other], transB=turned)
        return node("MatMul", [x, other])

    def window():
        if rank < 3:
            return False
        spatial = rank - 2
        more = {}
        if rng.random() < 0.5:
            more["strides"] = [rng.randint(1, 3) for _ in range(spatial)]
        if rng.random() < 0.4:
            more["pads"] = [rng.randint(0, 1) for _ in range(2 * spatial)]
        elif rng.random() < 0.5:
            more["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
        kernel = [rng.randint(1, 3) for _ in range(spatial)]
        if rng.random() < 0.4:
            more["dilations"] = [rng.randint(1, 2) for _ in range(spatial)]
        if rng.random() < 0.5 and dims[1]:
            weights = m.name()
            m.initializers.append(constant(weights, m.type(x), [rng.randint(1, 4), dims[1], *kernel]))
            return node("Conv", [x, weights], **more)
        op = rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
        if op.startswith("Global"):
            return node(op, [x])
        if op == "AveragePool" and m.opset < 19:
            more.pop("dilations", None)
        if rng.random() < 0.4:
            more["ceil_mode"] = 1
        return node(op, [x], kernel_shape=kernel, **more)

    def reduce():
        op = rng.choice(REDUCE)
        axes = sorted({axis(rng, rank) % max(rank, 1) for _ in range(rng.randint(1, 2))}) if rank else []
        keep = {"keepdims": rng.randint(0, 1)} if rng.random() < 0.7 else {}
        if rng.random() < 0.3:
            return node(op, [x], **keep)
        if m.opset >= 18 or op == "ReduceSum":
            if rng.random() < 0.2:
                keep["noop_with_empty_axes"] = rng.randint(0, 1)
                axes = rng.choice([axes, []])
            return node(op, [x, m.integers(axes)], **keep)
        return node(op, [x], axes=axes, **keep) if axes else False

    def arg():
        return node(rng.choice(["ArgMax", "ArgMin"]), [x], axis=axis(rng, rank), keepdims=rng.randint(0, 1))

    def concat():
        integers = m.pick(is_list)
        if integers and rng.random() < 0.4:
            other = m.pick(lambda type, dims: is_list(type, dims) and type == m.type(integers))
            return node("Concat", [integers, other], axis=rng.choice([0, -1]))
        others = [m.pick(lambda t, d: t == m.type(x) and len(d) == rank) for _ in range(rng.randint(0, 2))]
        return node("Concat", [x, *others], axis=axis(rng, rank))

    def split():
        parts = rng.randint(1, 4)
        outputs = [y] + [m.name() for _ in range(parts - 1)]
        place = axis(rng, rank)
        more = {"num_outputs": parts} if m.opset >= 18 else {}
        if rank and dims[place] and rng.random() < 0.5 and dims[place] >= parts:
            sizes = [1] * (parts - 1) + [dims[place] - parts + 1]
            return node("Split", [x, m.integers(sizes)], outputs, axis=place)
        return node("Split", [x], outputs, axis=place, **more)

    def slice_():
        # onnx 1.23 crashes for negative steps over empty tensors.
        source = m.pick(lambda type, dims: len(dims) > 0 and 0 not in dims)
        if source is None:
            return False
        size = len(m.dims(source))
        axes = rng.sample(range(size), rng.randint(1, size))
        most = [rng.choice([-9, -2, -1, 0, 1, 2, 3, 5, 2**31 - 1, 2**63 - 1]) for _ in range(2 * len(axes))]
        starts, ends = most[: len(axes)], most[len(axes) :]
        inputs = [source, m.integers(starts), m.integers(ends)]
        if rng.random() < 0.7 or len(axes) < size:
            inputs.append(m.integers([a - rng.choice([0, size]) for a in axes]))
            if rng.random() < 0.5:
                inputs.append(m.integers([rng.choice([1, 1, 2, 3, -1, -2]) for _ in axes]))
        return node("Slice", inputs)

    def transpose():
        order = list(range(rank))
        rng.shuffle(order)
        return node("Transpose", [x], **({"perm": order} if rng.random() < 0.7 else {}))

    def reshape():
        shape = m.pick(is_list)
        if shape and rng.random() < 0.5 and m.type(shape) == TensorProto.INT64:
            return node("Reshape", [x, shape])
        wanted = list(dims)
        rng.shuffle(wanted)
        wanted = [0 if extent is None else extent for extent in wanted]
        if wanted and rng.random() < 0.7:
            wanted[rng.randrange(len(wanted))] = -1
        if wanted and rng.random() < 0.4:
            wanted[rng.randrange(len(wanted))] = 0
        if rng.random() < 0.3:
            wanted = [-1]
        return node("Reshape", [x, m.integers(wanted)])

    def squeeze():
        source = m.pick()
        size = len(m.dims(source))
        if rng.random() < 0.5:
            count = rng.randint(1, 2)
            return node("Unsqueeze", [source, m.integers(rng.sample(range(size + count), count))])
        ones = [place for place, extent in enumerate(m.dims(source)) if extent == 1]
        if ones and rng.random() < 0.7:
            return node("Squeeze", [source, m.integers([rng.choice(ones) - rng.choice([0, size])])])
        return node("Squeeze", [source])

    def flatten():
        return node("Flatten", [x], **({"axis": rng.randint(-rank, rank)} if rng.random() < 0.8 else {}))

    def expand():
        shape = m.pick(is_list)
        if shape and rng.random() < 0.3 and m.type(shape) == TensorProto.INT64:
            return node("Expand", [x, shape])
        wanted = [rng.choice([extent or 1, extent or 1, 1, 3]) for extent in dims]
        return node("Expand", [x, m.integers([2] * rng.randint(0, 1) + wanted)])

    def tile():
        return node("Tile", [x, m.integers([rng.randint(1, 3) for _ in dims])])

    def pad():
        if rank == 0:
            return False
        pads = [rng.randint(-1, 2) for _ in range(2 * rank)]
        if m.opset >= 18 and rng.random() < 0.5:
            axes = rng.sample(range(rank), rng.randint(1, rank))
            return node("Pad", [x, m.integers(pads[: 2 * len(axes)]), "", m.integers(axes)])
        return node("Pad", [x, m.integers(pads)])

    def gather():
        source = m.pick(lambda type, dims: len(dims) > 0)
        size = len(m.dims(source))
        indices = rng.choice([m.integers([0], []), m.integers([0, -1]), m.integers([0, 0], [2, 1])])
        return node("Gather", [source, indices], **({"axis": axis(rng, size)} if rng.random() < 0.8 else {}))

    def top_k():
        count = m.integers([rng.randint(1, 2)])
        return node("TopK", [x, count], [y, m.name()], axis=axis(rng, rank))

    def resize():
        sizes = [extent or 2 for extent in dims]
        if len(sizes) > 2:
            sizes[2:] = [rng.randint(1, 9) for _ in sizes[2:]]
        more = {}
        if m.opset >= 18 and rng.random() < 0.6:
            more["keep_aspect_ratio_policy"] = rng.choice(["stretch", "not_larger", "not_smaller"])
        return node("Resize", [x, "", "", m.integers(sizes)], **more)

    def shape():
        source = m.pick()
        size = len(m.dims(source))
        more = {}
        if m.opset >= 15 and rng.random() < 0.5:
            more["start"] = rng.randint(-size - 1, size + 1)
            if rng.random() < 0.5:
                more["end"] = rng.randint(-size - 1, size + 1)
        return node(rng.choice(["Shape", "Shape", "Shape", "Size"]), [source], **({} if not more else more))

    def arithmetic():
        left = m.pick(lambda type, dims: type in (6, 7) and len(dims) <= 2)
        if left is None:
            return False
        right = m.pick(lambda type, dims: type == m.type(left) and len(dims) <= 2)
        if rng.random() < 0.5:
            values = [rng.choice([0, 1, 2, 3, -1, 2**31])] if m.type(left) == 7 else [rng.choice([1, 2, 2**31 - 1])]
            right = m.integers(values, rng.choice([[], [1]]), m.type(left))
        return node(rng.choice(["Add", "Sub", "Mul", "Div"]), rng.choice([[left, right], [right, left]]))

    def filled():
        shape = m.pick(lambda type, dims: is_list(type, dims) and type == TensorProto.INT64)
        if shape is None:
            return False
        more = {}
        if rng.random() < 0.5:
            more["value"] = helper.make_tensor("", *rng.choice([(7, [1], [3]), (1, [1], [0.5])]))
        return node("ConstantOfShape", [shape], **more)

    def range_():
        values = [rng.randint(-3, 9), rng.randint(-3, 9), rng.choice([1, 2, 3, -1, -2])]
        return node("Range", [m.integers([value], []) for value in values])

    def blocks():
        return rank == 4 and node(rng.choice(["DepthToSpace", "SpaceToDepth"]), [x], blocksize=rng.randint(1, 2))

    def quantize():
        if m.type(x) != TensorProto.FLOAT:
            return False
        scale = m.name()
        m.initializers.append(helper.make_tensor(scale, 1, [], [0.5]))
        zero = m.integers([0], [], rng.choice([2, 3]))
        if not node("QuantizeLinear", [x, scale, zero]):
            return False
        more = {"output_dtype": rng.choice([1, 10])} if m.opset >= 23 and rng.random() < 0.5 else {}
        return m.add(make("DequantizeLinear", [y, scale, zero], [m.name()], **more))

    def norm():
        scale = m.name()
        kind = rng.choice([m.type(x), 1])
        if m.opset < 23 or rank == 0 or not dims[-1]:
            return False
        m.initializers.append(constant(scale, kind, [dims[-1]]))
        return node("RMSNormalization", [x, scale])

    def plugin():
        if m.type(x) not in (1, 10) or not 1 <= rank <= 8:
            return False
        count = rng.randint(1, min(rank, 2))
        pads = [rng.randint(0, 2) for _ in range(2 * count)]
        own = {"plugin_namespace": "sample", "plugin_version": "1", "aot": 1}
        mine = make("circ_pad_plugin", [x], [y], domain="sample", pads=pads, **own)
        # Pairs start from the last dimension.
        front, back = [0] * rank, [0] * rank
        for place in range(count):
            front[rank - 1 - place], back[rank - 1 - place] = pads[2 * place], pads[2 * place + 1]
        return m.add(mine, make("Pad", [x, m.integers(front + back)], [y]))

    kinds = [
        like, broadcast, where, cast, matmul, window, window, reduce, arg, concat, split, slice_, slice_, transpose,
        reshape, reshape, squeeze, flatten, expand, tile, pad, gather, gather, top_k, resize, shape, shape, shape,
        arithmetic, arithmetic, filled, range_, blocks, quantize, norm, plugin, plugin,
    ]  # fmt: skip
    return rng.choice(kinds)()


def constant(name, type, dims):
    count = 1
    for extent in dims:
        count *= extent
    return helper.make_tensor(name, type, dims, [0.0] * count)


def main():
    folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    counts = collections.Counter()
    for index in range(count):
        maker = Maker(rng)
        for _ in range(24):
            steps(maker)
            if len(maker.nodes) >= 14:
                break
        if not maker.nodes:
            continue
        counts.update(node.op_type for node in maker.nodes)
        inferred = onnx.shape_inference.infer_shapes(maker.model(maker.twins), strict_mode=True, data_prop=True)
        for name, model in [("onnx", maker.model(maker.nodes)), ("inferred.onnx", inferred)]:
            with open(os.path.join(folder, f"{index}.{name}"), "wb") as file:
                file.write(model.SerializeToString(deterministic=True))
    print(json.dumps(dict(sorted(counts.items()))))


if __name__ == "__main__":
    main()
