"""Imports the kernels of kernels_triton.py, and says what their files do not: as a person would, in an editor.

    complete.py CUBINDER

Run it where `cache` has what Triton made. Writes a manifest for each kernel there.
"""

import pathlib
import subprocess
import sys

LIMITS = 'limits = { numel = "..=2147483647" }'
ALIKE = {
    'namespace = ""': 'namespace = "sample"',
    "TYPE_OF_ELEMENTS": "T",
    "TENSOR_": "",
    '"x: T*': '"x: const T*',
    "SHAPE_OF_y": "x.shape",
    "NUMBER_OF_PROGRAMS": "ceil_div(numel(y), BLOCK)",
    "VALUE_OF_count": "numel(y)",
    'type = "T"\n\n[[outputs]]': f'type = "T"\n{LIMITS}\n\n[[outputs]]',
}

# For each kernel the constants, what is said instead of what, and what comes behind it.
KERNELS = {
    "sum_along": (
        ["BLOCK=128", "stride=1"],
        {
            **ALIKE,
            'namespace = ""': 'namespace = "sample"\nrequire = [{ expr = "-x.rank <= axis and axis < x.rank", message = "`axis` is none of x" }]',
            "SHAPE_OF_y": "[1 if i == place() else x.shape[i] for i in range(x.rank)]",
            "NUMBER_OF_PROGRAMS": "numel(y)",
            "VALUE_OF_count": "x.shape[place()]",
            "VALUE_OF_stride": "prod([x.shape[i] for i in range(place() + 1, x.rank)])",
        },
        """
[attributes.axis]
type = "i32"
default = -1

[functions]
place = { params = [], body = "axis if axis >= 0 else axis + x.rank" }
""",
    ),
    "clip": (
        ["BLOCK=512,1024"],
        {
            **ALIKE,
            "id = 1 ": 'id = 1\nguard = "numel(y) <= 4096"',
            "VALUE_OF_least": "least",
            "VALUE_OF_most": "most",
            "VALUE_OF_BLOCK": "BLOCK",
        },
        """
[attributes.least]
type = "f32"

[attributes.most]
type = "f32"
""",
    ),
    "affine": (
        ["BLOCK=1024"],
        {**ALIKE, "VALUE_OF_factor": "factor", "VALUE_OF_shift": "shift"},
        """
[attributes.factor]
type = "f32"

[attributes.shift]
type = "f32"
""",
    ),
}


def main():
    for kernel, (constants, edits, more) in KERNELS.items():
        manifest = pathlib.Path(f"{kernel}.toml")
        # `cubinder import` leaves what is there as it is.
        manifest.unlink(missing_ok=True)
        command = [sys.argv[1], "import", "triton", "cache", "--kernel", kernel, "-o", manifest]
        for constant in constants:
            command += ["--constant", constant]
        subprocess.run(command, check=True)
        text = manifest.read_text()
        for old, new in edits.items():
            assert old in text, f"{kernel}: {old} is not in what `cubinder import` wrote"
            text = text.replace(old, new)
        manifest.write_text(text + more)


main()
