"""Writes inputs and reference outputs of a network of `networks.py`, computed with numpy.

    python3 reference.py PREFIX --network chain --type f32 --shape 10,3,32,32 [--set pads=[1,1]] [--seed N]

Writes raw bytes to PREFIX.NAME for each tensor, and an output's values to PREFIX.NAME.json; prints one JSON object with the
paths.
"""

import argparse
import json

import networks
import numpy as np


def tensor(prefix, name, values, types, network, numbers):
    path = f"{prefix}.{name}"
    values.tofile(path)
    if numbers:
        with open(path + ".json", "w") as file:
            json.dump([float(value) for value in values.flatten()], file)
    return {
        "name": name,
        "type": types[name],
        "shape": list(values.shape),
        "alias": network.aliases.get(name),
        "data_dependent": name in network.data_dependent,
        "host": name in network.shape_inputs,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--shape", default="10,3,32,32")
    parser.add_argument("--seed", type=int, default=0)
    networks.add_options(parser)
    args = parser.parse_args()
    network, settings, types = networks.chosen(args.network, args.type, dict(args.set))
    shape = [int(n) for n in args.shape.split(",") if n]
    generator = np.random.default_rng(args.seed)
    inputs = {name: network.data(generator, shape, networks.TYPES[types[name]]) for name in network.inputs}
    outputs = network.reference(inputs, settings)
    for name, values in outputs.items():
        assert values.dtype == networks.TYPES[types[name]], (name, values.dtype)
    print(
        json.dumps(
            {
                "inputs": [tensor(args.prefix, *item, types, network, False) for item in inputs.items()],
                "outputs": [tensor(args.prefix, *item, types, network, True) for item in outputs.items()],
            }
        )
    )


if __name__ == "__main__":
    main()
