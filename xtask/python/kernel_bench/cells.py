"""The measured cells: nodes in files of test cases whose names start with a size."""

import dataclasses
import pathlib
import tomllib

SIZES = ("small", "typical", "large")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A node of a plugin in a file of cases."""

    plugin: str
    size: str
    what: str
    shapes: dict
    types: dict
    attributes: dict
    arrays: dict

    @property
    def key(self):
        return f"{self.plugin}, {self.size}: {self.what}"

    def record(self):
        """Returns the cell's part of a result."""
        return {name: getattr(self, name) for name in ("plugin", "size", "what", "types", "attributes", "shapes")}

    def dtype(self, parameter="T", default="f32"):
        import torch

        return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32}[
            self.types.get(parameter, default)
        ]


def of_file(path):
    """Returns the cells of a file, named after the plugin."""
    path = pathlib.Path(path)
    document = tomllib.loads(path.read_text())
    for case in document["cases"]:
        size, _, what = case["name"].partition(": ")
        if size not in SIZES:
            continue
        held = document.get("inputs", {}) | case.get("inputs", {})
        arrays = {name: value for name, value in held.items() if isinstance(value, list)}
        yield Cell(path.stem, size, what, case["shapes"], case.get("types", {}), case.get("attributes", {}), arrays)


def of_folder(folder):
    """Returns all cells, sorted by operator."""
    return [cell for path in sorted(pathlib.Path(folder).glob("*.toml")) for cell in of_file(path)]
