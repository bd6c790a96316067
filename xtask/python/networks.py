"""The networks of the demo, the samples and the GPU tests: their nodes, and reference functions in NumPy.

Owns both, so that a network and its reference agree. Independent of TensorRT and Cubinder; `onnx` is imported only when a
model is written. `write_model.py` and `reference.py` are its programs.
"""

import functools

import ml_dtypes
import numpy as np

TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8": ml_dtypes.float8_e4m3fn,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
}

# Changed by `--set NAME=VALUE`.
DEFAULTS = {"pads": [1, 1, 1, 1], "block_size": 256, "delta": 1, "nodes": 10, "kinds": [0], "axis": -1}


class Network:
    """`nodes` returns (op, inputs, outputs, attributes) for settings; `reference` the outputs by name for inputs and settings.

    `inputs` and `outputs` are names with element types, where "T" is the network's own. `aliases` names the input whose memory an
    output shares, `data_dependent` the outputs whose shape only the data decide. `data` makes an input from a random generator,
    a shape and a type. `ranks` says those of outputs that have not the inputs' rank, `shape_inputs` the shapes of inputs whose values
    decide shapes, `constants` the tensors that the network itself holds: element type and values."""

    def __init__(
        self, nodes, reference, inputs=None, outputs=None, aliases=None, data_dependent=(), data=None, namespace="sample", ranks=None,
        shape_inputs=None, constants=None,
    ):
        self.nodes = nodes
        self.reference = reference
        self.inputs = inputs or {"x": "T"}
        self.outputs = outputs or {"y": "T"}
        self.aliases = aliases or {}
        self.data_dependent = data_dependent
        self.data = data or eighths
        self.namespace = namespace
        self.shape_inputs = shape_inputs or {}
        self.constants = constants or {}
        self.ranks = {**{name: 2 for name in data_dependent}, **(ranks or {})}


# ---- data


def eighths(generator, shape, dtype):
    """Returns multiples of 1/8 below 64: exact in both types, after adding small integers, and in decimal text."""
    return (generator.integers(-512, 512, shape) / 8).astype(dtype)


def mostly_zeros(generator, shape, dtype):
    """Returns zeros of both signs among other numbers: the least subnormal, infinity and NaN."""
    values = np.array([0.0, -0.0, 0.0, 1.5, -2.0, np.finfo(dtype).smallest_subnormal, np.inf, np.nan], dtype)
    return generator.choice(values, shape, p=[0.35, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05])


def stretches(generator, shape, dtype):
    """Returns a tensor's data; for shape inputs the extents (unchanged for squares, otherwise odd) and the
    factor (1 for squares, otherwise 3)."""
    square = len(set(shape)) == 1
    if dtype == np.int64:
        return np.array(shape if square else [extent * 2 + 1 for extent in shape], dtype)
    return np.array([1 if square else 3], dtype) if dtype == np.int32 else eighths(generator, shape, dtype)


def small(generator, shape, dtype):
    """Returns integers that every type can represent, including 4-bit integers and 8-bit floats; for `bool` both values."""
    return generator.integers(-8, 8, shape).astype(np.int8).astype(dtype)


# ---- numpy's results


def circ_pad(x, pads):
    """Pads; `pads` has pairs of before and after, the last dimension first."""
    widths = [(0, 0)] * x.ndim
    for pair in range(len(pads) // 2):
        widths[x.ndim - 1 - pair] = (pads[2 * pair], pads[2 * pair + 1])
    return np.pad(x, widths, mode="wrap")


def add(x, delta):
    """Computes in single precision and rounds to the type, as kernels do."""
    return (x.astype(np.float32) + np.float32(delta)).astype(x.dtype)


def non_zero(x):
    """NaN is not zero, -0.0 is."""
    return np.argwhere(x != 0).astype(np.int32)


def normalize(x):
    """Divides each element by the largest magnitude."""
    largest = np.max(np.abs(x), initial=np.float32(0))
    return x / largest if largest > 0 else np.zeros_like(x)


def exchange(x, block=256):
    """Adds elements at equal positions of two blocks; both get the sum."""
    whole = np.zeros(-(-x.size // (2 * block)) * 2 * block, x.dtype)
    whole[: x.size] = x.ravel()
    pairs = whole.reshape(-1, 2, block)
    both = np.broadcast_to(pairs.sum(axis=1, keepdims=True), pairs.shape)
    return both.ravel()[: x.size].reshape(x.shape)


def neighbours(x):
    """Adds each square to the next one; the last to the first."""
    squares = x.ravel() ** 2
    return (squares + np.roll(squares, -1)).reshape(x.shape)


def stretch(x, target, times):
    """Resizes x to the extents in the values by nearest neighbor."""
    rows, columns = (np.arange(extent * times) for extent in target)
    return x[np.ix_(rows * x.shape[0] // len(rows), columns * x.shape[1] // len(columns))]


# ---- the networks


def pad_node(inputs, outputs, pads):
    return ("circ_pad_plugin", inputs, outputs, {"pads": pads, "aot": 1})


def add_node(inputs, outputs, block_size=256):
    return ("elemwise_add_plugin", inputs, outputs, {"block_size": block_size, "aot": 1})


def inplace_node(inputs, outputs, delta):
    return ("elemwise_add_plugin_", inputs, outputs, {"delta": delta, "aot": 1})


def non_zero_node(inputs, outputs):
    return ("non_zero_plugin", inputs, outputs, {"aot": 1})


def tensor(number, last):
    """Returns the name of a tensor in a chain of nodes from x to y."""
    return {0: "x", last: "y"}.get(number, f"t{number}")


NETWORKS = {
    # x -> circular padding, twice -> add one -> y, in batches.
    "chain": Network(
        lambda s: [
            pad_node(["x"], ["a"], [1, 1, 2, 2]),
            pad_node(["a"], ["b"], [3, 0]),
            add_node(["b"], ["y"]),
        ],
        lambda i, s: {"y": add(circ_pad(circ_pad(i["x"], [1, 1, 2, 2]), [3, 0]), 1)},
    ),
    "pad": Network(
        lambda s: [pad_node(["x"], ["y"], s["pads"])],
        lambda i, s: {"y": circ_pad(i["x"], s["pads"])},
    ),
    # Three, two alike with separate inputs.
    "pads": Network(
        lambda s: [
            pad_node(["x"], ["y"], s["pads"]),
            pad_node(["z"], ["w"], s["pads"]),
            pad_node(["x"], ["v"], [0, 3, 2, 1]),
        ],
        lambda i, s: {"y": circ_pad(i["x"], s["pads"]), "w": circ_pad(i["z"], s["pads"]), "v": circ_pad(i["x"], [0, 3, 2, 1])},
        inputs={"x": "T", "z": "T"},
        outputs={"y": "T", "w": "T", "v": "T"},
    ),
    "add": Network(
        lambda s: [add_node(["x"], ["y"], s["block_size"])],
        lambda i, s: {"y": add(i["x"], 1)},
    ),
    "adds": Network(
        lambda s: [add_node([tensor(i, s["nodes"])], [tensor(i + 1, s["nodes"])]) for i in range(s["nodes"])],
        lambda i, s: {"y": functools.reduce(lambda x, _: add(x, 1), range(s["nodes"]), i["x"])},
    ),
    # In place.
    "inplace": Network(
        lambda s: [inplace_node(["x"], ["t"], s["delta"]), inplace_node(["t"], ["y"], 2 * s["delta"])],
        lambda i, s: {"y": add(add(i["x"], s["delta"]), 2 * s["delta"])},
        aliases={"y": "x"},
    ),
    "non_zero": Network(
        lambda s: [non_zero_node(["x"], ["indices", "count"])],
        lambda i, s: {"indices": non_zero(i["x"])},
        outputs={"indices": "i32"},
        data_dependent=("indices",),
        data=mostly_zeros,
    ),
    # The count is also an output.
    "non_zero_counted": Network(
        lambda s: [non_zero_node(["x"], ["indices", "count"])],
        lambda i, s: {"indices": non_zero(i["x"]), "count": np.array(len(non_zero(i["x"])), np.int64)},
        outputs={"indices": "i32", "count": "i64"},
        data_dependent=("indices",),
        data=mostly_zeros,
        ranks={"count": 0},
    ),
    # The handwritten C++ plugin.
    "reference": Network(
        lambda s: [("CircPadReference", ["x"], ["y"], {"pads": s["pads"]})],
        lambda i, s: {"y": circ_pad(i["x"], s["pads"])},
        namespace="reference",
    ),
}

# Several steps (tests/data/run): sums of eighths are exact in any order.
NETWORKS["sum"] = Network(
    lambda s: [("sum_plugin", ["x"], ["y", "mark"], {"aot": 1})],
    lambda i, s: {
        "y": np.sum(i["x"], dtype=np.float64).astype(np.float32).reshape([1] * i["x"].ndim),
        "mark": np.full([1] * i["x"].ndim, -1, np.int32),
    },
    outputs={"y": "T", "mark": "i32"},
    namespace="test",
)
for name, of in (
    ("normalize", normalize),
    ("exchange", exchange),
    ("neighbours", neighbours),
    ("reverse", lambda x: x[:, ::-1]),
):
    NETWORKS[name] = Network(
        lambda s, name=name: [(f"{name}_plugin", ["x"], ["y"], {"aot": 1})],
        lambda i, s, of=of: {"y": np.ascontiguousarray(of(i["x"]))},
        namespace="test",
    )

# In place, by each name of the memory (tests/data/run/aliases), once and twice.
WEIGHT = 0.25


def lerp(x, e):
    return x + np.float32(WEIGHT) * (e - x)


def approach(x, e):
    difference = np.float32(WEIGHT) * (e - x)
    return x + difference, e - difference


for way in ("by_input", "by_output", "by_both", "guarded"):
    for count in (1, 2):
        NETWORKS[f"lerp_{way}_{count}"] = Network(
            lambda s, way=way, count=count: [
                (f"lerp_{way}_", [tensor(i, count), "e"], [tensor(i + 1, count)], {"weight": WEIGHT, "aot": 1}) for i in range(count)
            ],
            lambda i, s, count=count: {"y": functools.reduce(lambda x, _: lerp(x, i["e"]), range(count), i["x"])},
            inputs={"x": "T", "e": "T"},
            aliases={"y": "x"},
            namespace="test",
        )
NETWORKS["lerp_then_read"] = Network(
    lambda s: [("lerp_then_read_", ["x", "e"], ["y", "z"], {"weight": WEIGHT, "aot": 1})],
    lambda i, s: {"y": lerp(i["x"], i["e"]), "z": 2 * lerp(i["x"], i["e"])},
    inputs={"x": "T", "e": "T"},
    outputs={"y": "T", "z": "T"},
    aliases={"y": "x"},
    namespace="test",
)
NETWORKS["approach"] = Network(
    lambda s: [
        ("approach_", ["x", "e"], ["t", "u"], {"weight": WEIGHT, "aot": 1}),
        ("approach_", ["t", "u"], ["y", "z"], {"weight": WEIGHT, "aot": 1}),
    ],
    lambda i, s: dict(zip("yz", approach(*approach(i["x"], i["e"])))),
    inputs={"x": "T", "e": "T"},
    outputs={"y": "T", "z": "T"},
    aliases={"y": "x", "z": "e"},
    namespace="test",
)

# Through the requested types and formats (numbers in tests/data/run/pack.toml; BOOL keeps no number).
BOOL = 27


def through(s):
    last = 2 * len(s["kinds"])
    for number, kind in enumerate(s["kinds"]):
        names = [tensor(2 * number + i, last) for i in range(3)]
        yield ("pack_plugin", [names[0]], [names[1]], {"kind": kind, "aot": 1})
        yield ("unpack_plugin", [names[1]], [names[2]], {"kind": kind, "aot": 1})


NETWORKS["layouts"] = Network(
    lambda s: list(through(s)),
    lambda i, s: {"y": (i["x"] != 0).astype(i["x"].dtype) if BOOL in s["kinds"] else i["x"]},
    data=small,
    namespace="test",
)
NETWORKS["flip"] = Network(
    lambda s: [("flip_plugin", ["x"], ["y"], {"aot": 1})],
    lambda i, s: {"y": np.ascontiguousarray(i["x"].ravel()[::-1]).reshape(i["x"].shape)},
    data=small,
    namespace="test",
)

# An even number, or TensorRT-RTX 1.7 fails internally.
WEIGHTS = np.array([-8, 7, 0, -1, 3, 1, -5, 2, 6, -3, 4, -7], np.int8)
NETWORKS["weigh"] = Network(
    lambda s: [("weigh_plugin", ["x", "weights"], ["y"], {"aot": 1})],
    lambda i, s: {
        "y": (i["x"].astype(np.float32) * np.resize(WEIGHTS, i["x"].shape[1]).astype(np.float32)).astype(i["x"].dtype)
    },
    data=small,
    namespace="test",
    constants={"weights": ("i4", WEIGHTS)},
)

# A constant input, an unused output, one tensor twice.
HALVES = np.array([0.5, -1.5, 2.5], np.float32)


def halves(x):
    return np.resize(HALVES, x.size).reshape(x.shape)


NETWORKS["split"] = Network(
    lambda s: [
        ("split_plugin", ["x", "halves"], ["a", "unread"], {"aot": 1}),
        ("split_plugin", ["a", "a"], ["y", "nothing"], {"aot": 1}),
    ],
    lambda i, s: {"y": 2 * (i["x"] + halves(i["x"])), "nothing": np.zeros_like(i["x"])},
    outputs={"y": "T", "nothing": "T"},
    namespace="test",
    constants={"halves": ("f32", HALVES)},
)

# Shape inputs (tests/data/run/stretch.toml): several values, and one.
NETWORKS["stretch"] = Network(
    lambda s: [("stretch", ["x", "target", "times"], ["y"], {"aot": 1, "tensorrt_plugin_shape_input_indices": [1, 2]})],
    lambda i, s: {"y": stretch(i["x"], i["target"], int(i["times"][0]))},
    inputs={"x": "T", "target": "i64", "times": "i32"},
    data=stretches,
    namespace="test",
    shape_inputs={"target": [2], "times": [1]},
)

# Triton's kernels (tests/data/other_compilers/kernels_triton.py). Only sums are inexact: rounded once.
for name, attributes, of in (
    ("sum_along", lambda s: {"axis": s["axis"]}, lambda x, s: x.sum(axis=s["axis"], dtype=np.float32, keepdims=True)),
    ("clip", lambda s: {"least": -20.5, "most": 31.25}, lambda x, s: np.clip(x, -20.5, 31.25)),
    ("affine", lambda s: {"factor": 2.0, "shift": -1.0}, lambda x, s: 2 * x - 1),
):
    NETWORKS[name] = Network(
        lambda s, name=name, attributes=attributes: [(name, ["x"], ["y"], {**attributes(s), "aot": 1})],
        lambda i, s, of=of: {"y": of(i["x"], s).astype(i["x"].dtype)},
    )

# Each variant's results (tests/data/run/vectors.toml); the plain name is the model's.
for variant in (None, 1, 2, 3):
    NETWORKS["vectors" if variant is None else f"vectors-{variant}"] = Network(
        lambda s: [("vectors_plugin", ["x"], ["y"], {"aot": 1})],
        lambda i, s, variant=variant: {"y": add(i["x"], 100 * (variant or 0))},
        namespace="test",
    )


# ---- the programs' options


def add_options(parser):
    import json

    def setting(text):
        name, value = text.split("=", 1)
        if name not in DEFAULTS:
            raise ValueError(name)
        return name, json.loads(value)

    parser.add_argument("--network", choices=NETWORKS, default="chain")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--set", type=setting, action="append", default=[], help="NAME=VALUE, in JSON: pads=[1,1]")


def chosen(name, element_type, changes):
    """Returns the network, its changed settings, and the element types of its tensors by name."""
    network = NETWORKS[name]
    tensors = {**network.inputs, **network.outputs}
    types = {tensor: element_type if ty == "T" else ty for tensor, ty in tensors.items()}
    return network, {**DEFAULTS, **changes}, types
