"""Writes inputs and reference outputs for the test networks, computed with numpy.

    python3 reference.py OUTPUT_PREFIX --network chain|pad|add|vectors-N --type f32|f16 --shape 10,3,32,32 [--pads 1,1,1,1] [--seed N]

Writes PREFIX.in (raw input), PREFIX.out (raw output) and PREFIX.json (the output's values), and prints one JSON object.
The values are multiples of 1/8 below 64: exact in both types, also after adding one, and in decimal text.
"""

import argparse
import json

import numpy as np

TYPES = {"f32": np.float32, "f16": np.float16}


def circ_pad(x, pads):
    """`pads` come in pairs of before and after, the last dimension first."""
    widths = [(0, 0)] * x.ndim
    for pair in range(len(pads) // 2):
        widths[x.ndim - 1 - pair] = (pads[2 * pair], pads[2 * pair + 1])
    return np.pad(x, widths, mode="wrap")


def add_one(x):
    return (x + x.dtype.type(1)).astype(x.dtype)


def chain(x, pads):
    """The network that write_model.py calls `chain`."""
    return add_one(circ_pad(circ_pad(x, [1, 1, 2, 2]), [3, 0]))


def vectors(variant):
    """What that variant of the plugin in tests/data/run/vectors.toml gives."""
    return lambda x, pads: (x + x.dtype.type(100 * variant)).astype(x.dtype)


NETWORKS = {"chain": chain, "pad": circ_pad, "add": lambda x, pads: add_one(x)}
NETWORKS.update({f"vectors-{variant}": vectors(variant) for variant in (1, 2, 3)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--network", choices=NETWORKS, default="chain")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--shape", default="10,3,32,32")
    parser.add_argument("--pads", default="1,1,1,1")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    shape = [int(n) for n in args.shape.split(",") if n]
    pads = [int(n) for n in args.pads.split(",") if n]
    generator = np.random.default_rng(args.seed)
    x = (generator.integers(-512, 512, shape) / 8).astype(TYPES[args.type])
    y = NETWORKS[args.network](x, pads)
    x.tofile(args.prefix + ".in")
    y.tofile(args.prefix + ".out")
    with open(args.prefix + ".json", "w") as file:
        json.dump([float(value) for value in y.flatten()], file)
    print(json.dumps({"shape": shape, "out_shape": list(y.shape)}))


if __name__ == "__main__":
    main()
