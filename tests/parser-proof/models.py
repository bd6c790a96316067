"""Compiles the plugins that TensorRT can launch itself for both routes, and writes ONNX models of their nodes with what is expected of each.

    python3 models.py OUT --cubinder PROGRAM --runtime-library LIBRARY

OUT gets `native/` and `plugin/` with the same libraries, one for each list, `models/` with the models, and there `LIST.native` and
`LIST.plugin`, what `parser-proof` reads (`list.hpp`). Every node is there with `aot` 1 and without it.

What a tensor is to be is said here, by rules of Python, and held against `cubinder eval`: where shapes are known, as they are; where they are
not, at the best shapes of the profile. An extent is -1 where two choices of the unknown ones give two answers.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "xtask/python"))
from write_model import TYPES  # noqa: E402

# `NetworkDefinitionCreationFlag` of TensorRT 10.15 (`NvInfer.h`).
STRONGLY_TYPED, PREFER_JIT, PREFER_AOT = 2, 4, 8

LISTS = {
    "plugins": [
        "manifests/circ_pad_plugin.toml",
        "manifests/elemwise_add_plugin.toml",
        "manifests/elemwise_add_plugin_.toml",
        "manifests/cubinder/rms_norm.toml",
        "manifests/cubinder/add_rms_norm.toml",
        "manifests/cubinder/rotary_embedding.toml",
        "manifests/cubinder/multiscale_deformable_attention.toml",
        "tests/data/run/attributes.toml",
        "tests/data/run/flip.toml",
        "tests/data/run/pack.toml",
        "tests/data/run/reverse.toml",
        "tests/data/run/split.toml",
        "tests/data/run/tiles.toml",
        "tests/data/run/unpack.toml",
        "tests/data/run/vectors.toml",
        "tests/data/run/weigh.toml",
    ],
    "circ_pad": ["tests/data/run/circ_pad_plugin.toml"],
}

# The profile's min, opt and max; another value for the rule.
UNKNOWN = {
    "batch": (1, 2, 4, 3),
    "height": (4, 16, 32, 19),
    "width": (4, 16, 64, 23),
    "rows": (1, 24, 512, 31),
    "positions": (8, 32, 64, 40),
    "queries": (1, 5, 50, 7),
}


@dataclasses.dataclass
class Node:
    """A plugin node; `inputs` and `outputs` are tensor names."""

    op: str
    namespace: str
    inputs: list
    outputs: list
    attributes: dict


@dataclasses.dataclass
class Network:
    """A network: unknown extents are names in `UNKNOWN`; `tensors` returns type and shape by name for the inputs'
    shapes. `evaluated` are types and formats for `cubinder eval`, None for several nodes."""

    name: str
    manifest: str
    inputs: dict
    nodes: list
    tensors: object
    evaluated: list | None = dataclasses.field(default_factory=list)
    constants: dict = dataclasses.field(default_factory=dict)
    outputs: list | None = None
    flags: int = STRONGLY_TYPED
    refused: dict = dataclasses.field(default_factory=dict)
    aots: tuple = (1, None)


# ---- the networks


def text(values):
    return "".join(f"{value:+g}" if isinstance(value, (int, float)) else str(value) for value in values)


def single(manifest, op, namespace, what, inputs, outputs, attributes=None, evaluated=(), **more):
    """Builds a network of one node."""
    known = {name: shape for name, (_, shape) in {**inputs, **more.get("constants", {})}.items() if not isinstance(shape, np.ndarray)}
    for name, (_, values) in more.get("constants", {}).items():
        known[name] = list(values.shape)
    names = list(outputs(known_extents(known, 1)))
    node = Node(op, namespace, [*inputs, *more.get("constants", {})], names, attributes or {})
    return Network(f"{op}-{what}", manifest, inputs, [node], outputs, list(evaluated), **more)


def padded(shape, pads):
    found = list(shape)
    for pair in range(len(pads) // 2):
        found[len(shape) - 1 - pair] += pads[2 * pair] + pads[2 * pair + 1]
    return found


def circ_pads(manifest):
    cases = [
        ("images", [10, 3, 32, 32], [1, 1, 1, 1]),
        ("uneven", [2, 7], [3, 0]),
        ("all", [2, 3, 4], [1, 2, 0, 5, 2, 2]),
        ("none", [1, 1, 2, 1, 3, 1, 2, 5], []),
        ("any", ["batch", 3, "height", "width"], [1, 1, 2, 2]),
        ("anyrows", ["rows", 12], [2, 1]),
    ]
    for ty, (what, shape, pads) in itertools.product(("f32", "f16"), cases):
        rule = lambda s, ty=ty, pads=pads: {"y": (ty, padded(s["x"], pads))}
        yield single(
            manifest, "circ_pad_plugin", "sample", f"{ty}-{what}", {"x": (ty, shape)}, rule, {"pads": pads}, [f"T={ty}"]
        )


ANY_SHAPES = [
    ("scalar", []),
    ("row", [7]),
    ("rank4", [2, 3, 4, 5]),
    ("rank8", [1, 2, 1, 3, 1, 2, 1, 4]),
    ("empty", [0, 4]),
    ("any", ["batch", "rows"]),
    ("anyheight", [2, "height", 8]),
]


def elementwise(manifest, op, namespace, types, attributes=None, shapes=None, x="x", y="y", parameter="T"):
    for ty, (what, shape) in itertools.product(types, shapes or ANY_SHAPES):
        rule = lambda s, ty=ty: {y: (ty, s[x])}
        given = [f"{parameter}={ty}"] if parameter else []
        yield single(manifest, op, namespace, f"{ty}-{what}", {x: (ty, shape)}, rule, attributes, given)


def norms(manifest, op):
    shapes = [("rows", [2, 8, 64]), ("odd", [5, 33]), ("one", [16]), ("any", ["batch", "rows", 256]), ("anyrows", ["rows", 4096])]
    for ty, (what, shape) in itertools.product(("f32", "f16", "bf16"), shapes):
        attributes = {"epsilon": 1e-6} if what != "odd" else {}
        inputs = {"x": (ty, shape), "residual": (ty, shape), "weight": (ty, [shape[-1]])}
        if op == "rms_norm":
            del inputs["residual"]
        outputs = ["y", "sum"] if op == "add_rms_norm" else ["y"]
        rule = lambda s, ty=ty, outputs=outputs: {name: (ty, s["x"]) for name in outputs}
        yield single(manifest, op, "cubinder", f"{ty}-{what}", inputs, rule, attributes, [f"T={ty}"])


def rotary(manifest):
    shapes = [
        ("known", [2, 4, 6, 64], 32, 32, {}),
        ("part", [1, 2, 3, 80], 16, 8, {"interleaved": 1}),
        ("any", ["batch", 4, "rows", 64], "positions", 32, {"interleaved": 0}),
    ]
    for ty, index, (what, x, known, pairs, attributes) in itertools.product(("f32", "f16", "bf16"), ("i64", "i32"), shapes):
        table = (ty, [known, pairs])
        inputs = {"x": (ty, x), "cos": table, "sin": table, "positions": (index, [x[0], x[2]])}
        rule = lambda s, ty=ty: {"y": (ty, s["x"])}
        given = [f"T={ty}", f"P={index}"]
        yield single(manifest, "rotary_embedding", "cubinder", f"{ty}-{index}-{what}", inputs, rule, attributes, given)


def attentions(manifest):
    shapes = [
        ("known", 1, 30, 2, 8, 2, 5, 4),
        ("levels", 2, 1360, 8, 32, 4, 100, 4),
        ("any", "batch", "rows", 8, 32, 4, "queries", 4),
    ]
    for ty, index, (what, batch, pixels, heads, channels, levels, queries, points) in itertools.product(
        ("f32", "f16", "bf16"), ("i64", "i32"), shapes
    ):
        inputs = {
            "value": (ty, [batch, pixels, heads, channels]),
            "extents": (index, [levels, 2]),
            "starts": (index, [levels]),
            "locations": (ty, [batch, queries, heads, levels, points, 2]),
            "weights": (ty, [batch, queries, heads, levels, points]),
        }
        rule = lambda s, ty=ty: {"y": (ty, [s["value"][0], s["locations"][1], s["value"][2] * s["value"][3]])}
        given = [f"T={ty}", f"I={index}"]
        yield single(
            manifest, "multiscale_deformable_attention", "cubinder", f"{ty}-{index}-{what}", inputs, rule, {}, given
        )


def attributes(manifest):
    plain = {
        "tiny": -128, "small": 300, "count": 70000, "large": -5, "half": 0.5, "single": 0.25, "double": 0.75, "mode": "reflect",
        "table": "abc", "axes": [0, -1], "halves": [0.5, 1.0], "scales": [0.125], "flags": [1, 0], "modes": ["a", "b"],
    }
    rule = lambda s: {"y": ("f32", s["x"])}
    for (what, given), (place, shape) in itertools.product(
        (("defaults", {}), ("plain", plain)), (("known", [3, 4]), ("any", ["rows", 4]))
    ):
        yield single(manifest, "attributes_plugin", "sample", f"{what}-{place}", {"x": ("f32", shape)}, rule, given)
    refusal = "the node asks for its values"
    yield single(
        manifest, "attributes_plugin", "sample", "shown", {"x": ("f32", [3, 4])}, rule, {**plain, "show": 1},
        refused={"native": refusal, "plugin": refusal},
    )


KINDS = (
    [("f32", f) for f in ("linear", "chw32", "hwc", "dhwc")]
    + [("f16", f) for f in ("linear", "chw2", "chw4", "chw32", "hwc", "hwc8", "hwc16", "dhwc8", "cdhw32")]
    + [("bf16", f) for f in ("linear", "chw2", "chw4", "hwc8", "dhwc8")]
    + [("i8", f) for f in ("linear", "chw4", "chw32", "hwc16", "cdhw32")]
    + [("f8", f) for f in ("linear", "hwc16")]
    + [(ty, "linear") for ty in ("i32", "i64", "bool", "i4")]
)
VOLUMES = ("dhwc", "dhwc8", "cdhw32")


def packs(manifest):
    """Converts into a type and format and back."""
    for kind, (ty, form) in enumerate(KINDS):
        volume = [3] if form in VOLUMES else []
        for what, shape in (("known", [2, 5, *volume, 4, 6]), ("any", ["batch", 5, *volume, "height", "width"])):
            nodes = [
                Node("pack_plugin", "test", ["x"], ["t"], {"kind": kind}),
                Node("unpack_plugin", "test", ["t"], ["y"], {"kind": kind}),
            ]
            rule = lambda s, ty=ty: {"t": (ty, s["x"]), "y": ("f32", s["x"])}
            name = f"pack_unpack-{kind}-{ty}-{form}-{what}"
            yield Network(name, manifest, {"x": ("f32", shape)}, nodes, rule, None, outputs=["y"])


def splits(manifest):
    rule = lambda s: {"sum": ("f32", s["a"]), "difference": ("f32", s["a"])}
    cases = [
        ("known", {"a": ("f32", [4, 6]), "b": ("f32", [3])}, {}),
        ("constant", {"a": ("f32", [2, 3, 4])}, {"b": ("f32", np.array([0.5, -1.5, 2.5], np.float32))}),
        ("any", {"a": ("f32", ["batch", "rows"]), "b": ("f32", ["queries"])}, {}),
    ]
    for what, inputs, constants in cases:
        yield single(manifest, "split_plugin", "test", what, inputs, rule, {}, constants=constants)


def tiles(manifest):
    shapes = [("scalar", []), ("row", [5]), ("rank4", [2, 3, 4, 5]), ("any", ["batch", 4, "width"]), ("last", [2, "width"])]
    for ty, (what, shape) in itertools.product(("f32", "f16"), shapes):
        rule = lambda s, ty=ty: {"y": (ty, [*s["x"][:-1], 2 * s["x"][-1]] if s["x"] else [])}
        yield single(manifest, "tiles_plugin", "test", f"{ty}-{what}", {"x": (ty, shape)}, rule, {"tile_kib": 1}, [f"T={ty}"])


def weighs(manifest):
    weights = ("i4", np.array([-8, 7, 0, -1, 3, 1, -5, 2, 6, -3, 4, -7], np.int8))
    for ty, (what, shape) in itertools.product(("f32", "f16", "f8"), (("known", [3, 24]), ("any", ["rows", 12]))):
        rule = lambda s, ty=ty: {"y": (ty, s["x"])}
        yield single(
            manifest, "weigh_plugin", "test", f"{ty}-{what}", {"x": (ty, shape)}, rule, {}, [f"T={ty}"], constants={"weights": weights}
        )


def preferences(manifest):
    """Combines preferences of the network and the node."""
    rule = lambda s: {"out0": ("f32", s["inp0"])}
    given = lambda what, **more: single(
        manifest, "elemwise_add_plugin", "sample", what, {"inp0": ("f32", ["batch", 8])}, rule, {"block_size": 128}, ["T=f32"], **more
    )
    yield given("prefer-jit", flags=STRONGLY_TYPED | PREFER_JIT)
    yield given("prefer-aot", flags=STRONGLY_TYPED | PREFER_AOT)
    yield given("weakly-typed", flags=0)
    yield given("aot", aots=(0,), refused={"native": "`aot` is 0, but TensorRT launches the kernel of this plugin"})


def networks(manifest):
    name = pathlib.Path(manifest).stem
    floats = ("f32", "f16")
    rows = [("rows", [6, 40]), ("empty", [0, 4]), ("any", ["rows", "width"])]
    made = {
        "circ_pad_plugin": lambda: circ_pads(manifest),
        "elemwise_add_plugin": lambda: itertools.chain(
            elementwise(manifest, "elemwise_add_plugin", "sample", floats, {"block_size": 128}, x="inp0", y="out0"),
            preferences(manifest),
        ),
        "elemwise_add_plugin_": lambda: elementwise(
            manifest, "elemwise_add_plugin_", "sample", floats, {"delta": -3}, [("rank4", [2, 3, 4, 5]), *ANY_SHAPES[-2:]], "inp0", "out0"
        ),
        "rms_norm": lambda: norms(manifest, "rms_norm"),
        "add_rms_norm": lambda: norms(manifest, "add_rms_norm"),
        "rotary_embedding": lambda: rotary(manifest),
        "multiscale_deformable_attention": lambda: attentions(manifest),
        "attributes": lambda: attributes(manifest),
        "flip": lambda: elementwise(manifest, "flip_plugin", "test", ("f32", "f16", "bf16", "f8", "i8", "i32", "i64", "bool")),
        "pack": lambda: packs(manifest),
        "reverse": lambda: elementwise(manifest, "reverse_plugin", "test", ("f32",), shapes=rows, parameter=None),
        "split": lambda: splits(manifest),
        "tiles": lambda: tiles(manifest),
        # Generated together with those of `pack`.
        "unpack": lambda: [],
        "vectors": lambda: elementwise(manifest, "vectors_plugin", "test", floats, {"bias": 7}, [ANY_SHAPES[1], ANY_SHAPES[2], ANY_SHAPES[5]]),
        "weigh": lambda: weighs(manifest),
    }
    return list(made[name]())


# ---- shapes


def known_extents(shapes, choice):
    return {name: [UNKNOWN[e][choice] if isinstance(e, str) else e for e in shape] for name, shape in shapes.items()}


def expected(network):
    """Returns type and extents of every tensor after parsing; -1 is unknown."""
    shapes = {name: shape for name, (_, shape) in network.inputs.items()}
    shapes.update({name: list(values.shape) for name, (_, values) in network.constants.items()})
    one, other = (network.tensors(known_extents(shapes, choice)) for choice in (1, 3))
    found = {name: (ty, [-1 if isinstance(e, str) else e for e in shape]) for name, (ty, shape) in network.inputs.items()}
    for name, (ty, shape) in one.items():
        found[name] = (ty, [a if a == b else -1 for a, b in zip(shape, other[name][1], strict=True)])
    return found


def written_shape(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def written_attribute(name, value):
    """Formats an attribute for `cubinder eval`, which knows the manifest's types."""
    if name == "table":
        value = list(value.encode())
    values = value if isinstance(value, list) else [value]
    if name in ("interleaved", "flags"):
        values = ["true" if value else "false" for value in values]
    return ",".join(map(str, values))


def evaluate(cubinder, network):
    """Compares the rule with `cubinder eval`."""
    shapes = {name: shape for name, (_, shape) in network.inputs.items()}
    shapes.update({name: list(values.shape) for name, (_, values) in network.constants.items()})
    shapes = known_extents(shapes, 1)
    command = [cubinder, "eval", str(ROOT / network.manifest), "--json", "--nvrtc", os.devnull]
    for name, shape in shapes.items():
        command += ["--shape", f"{name}={written_shape(shape)}"]
    for given in network.evaluated:
        command += ["--type", given]
    for name, value in network.nodes[0].attributes.items():
        command += ["--attr", f"{name}={written_attribute(name, value)}"]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    report = next((line for line in lines if "result" in line), {})
    if not report.get("evaluations"):
        raise SystemExit(f"{network.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    found = {
        tensor["name"]: (tensor["type"], tensor["shape"])
        for tensor in report["evaluations"][0]["tensors"]
        if tensor["role"] == "output"
    }
    rule = {name: (ty, list(shape)) for name, (ty, shape) in network.tensors(shapes).items()}
    if found != rule or report["result"] != "evaluated":
        raise SystemExit(f"{network.name}: the rule returns {rule}, `cubinder eval` {found} and `{report['result']}`")


# ---- models and lists


def write_model(network, aot, path):
    nodes = []
    for node in network.nodes:
        attributes = node.attributes if aot is None else {**node.attributes, "aot": aot}
        made = helper.make_node(
            node.op, node.inputs, node.outputs, name=node.op, domain=node.namespace, plugin_namespace=node.namespace, plugin_version="1"
        )
        for name, value in attributes.items():
            # An empty list has no element type.
            kind = onnx.AttributeProto.INTS if value == [] else None
            made.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        nodes.append(made)
    found = expected(network)
    outputs = network.outputs or network.nodes[0].outputs
    graph = helper.make_graph(
        nodes,
        network.name,
        [helper.make_tensor_value_info(name, TYPES[ty], shape) for name, (ty, shape) in network.inputs.items()],
        [helper.make_tensor_value_info(name, TYPES[found[name][0]], [None] * len(found[name][1])) for name in outputs],
        [helper.make_tensor(name, TYPES[ty], values.shape, values) for name, (ty, values) in network.constants.items()],
    )
    namespaces = {node.namespace: 1 for node in network.nodes}
    opsets = [helper.make_opsetid("", 21), *(helper.make_opsetid(name, version) for name, version in namespaces.items())]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def lines_of(network, file, route, is_built):
    group = pathlib.Path(network.manifest).stem
    yield f"model {file} {group}"
    yield f"flags {network.flags}"
    for node in network.nodes:
        yield f"node {node.op} {node.op} 1 {node.namespace}"
    for name, (ty, shape) in expected(network).items():
        yield " ".join(["tensor", name, ty, *map(str, shape)])
    for name, (_, shape) in network.inputs.items():
        if any(isinstance(extent, str) for extent in shape):
            shapes = (known_extents({name: shape}, choice)[name] for choice in range(3))
            yield " ".join(["profile", name, *map(written_shape, shapes)])
    if route in network.refused:
        yield f"refused {network.refused[route]}"
    elif is_built:
        yield "build"


def is_any(network):
    """Returns whether the network has an unknown extent."""
    return any(isinstance(extent, str) for _, shape in network.inputs.values() for extent in shape)


def built(networks):
    """Returns pairs of a network and `aot`: per plugin the first with known shapes and `aot` 1, and the first other one
    without it."""
    found = {}
    for network in networks:
        aot = None if is_any(network) else 1
        if aot in network.aots and not network.refused:
            found.setdefault((network.manifest, aot), (network.name, aot))
    return set(found.values())


def ops(manifest):
    """Returns name, version and namespace in the list's form."""
    import tomllib

    plugin = tomllib.loads((ROOT / manifest).read_text())["plugin"]
    return f"creator {plugin['name']} {plugin.get('version', '1')} {plugin['namespace']}"


def compile_library(args, route, name, manifests):
    folder = args.out / route
    folder.mkdir(parents=True, exist_ok=True)
    command = [args.cubinder, "compile", *manifests, "--name", name, "--route", route, "--target", args.target[route], "-q"]
    command += ["--out-dir", str(folder.resolve()), "--runtime-library", str(args.runtime_library.resolve())]
    subprocess.run(command, cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cubinder", required=True)
    parser.add_argument("--runtime-library", type=pathlib.Path, help="required to compile libraries")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.target = {"native": "sm_80", "plugin": "sm_80,sm_90"}
    models = args.out / "models"
    models.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, manifests in LISTS.items():
        made = [network for manifest in manifests for network in networks(manifest)]
        assert len({network.name for network in made}) == len(made)
        evaluated = [network for network in made if network.evaluated is not None and not network.refused]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda network: evaluate(args.cubinder, network), evaluated))
        texts = {route: [f"library lib{name}.so", *map(ops, manifests)] for route in ("native", "plugin")}
        to_build = built(made)
        for network in made:
            for aot in network.aots:
                file = f"{name}-{network.name}-{'absent' if aot is None else aot}.onnx"
                write_model(network, aot, models / file)
                count += 1
                for route, lines in texts.items():
                    lines.extend(lines_of(network, file, route, (network.name, aot) in to_build))
        for route, lines in texts.items():
            (models / f"{name}.{route}").write_text("\n".join(lines) + "\n")
            if args.runtime_library:
                compile_library(args, route, name, manifests)
        print(f"{name}: {len(made)} networks, {len(evaluated)} compared with `cubinder eval`")
    print(f"{count} models")


if __name__ == "__main__":
    main()
