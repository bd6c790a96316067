"""Writes the models of the `onnx` package's tests (shipped files and generated node tests) into a folder.

    python3 onnx_models.py FOLDER

Prints their number. A file is named after its test."""

import os
import sys
import warnings

import onnx

# The node tests divide by zero on purpose.
warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402


def main():
    folder = sys.argv[1]
    count = 0
    data = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data")
    for place, _, names in os.walk(data):
        for name in names:
            if name.endswith(".onnx"):
                with open(os.path.join(place, name), "rb") as file:
                    content = file.read()
                test = os.path.basename(place) if name == "model.onnx" else name.removesuffix(".onnx")
                count += write(folder, f"shipped-{test}", content)
    for case in collect_testcases(None):
        if case.model is not None:
            count += write(folder, case.name, case.model.SerializeToString())
    print(count)


def write(folder, name, content):
    with open(os.path.join(folder, f"{name}.onnx"), "wb") as file:
        file.write(content)
    return 1


if __name__ == "__main__":
    main()
