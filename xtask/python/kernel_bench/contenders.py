"""The contenders for an operator: functions that return results or raise the reason why they cannot."""

import functools

import torch

from . import operators, ours, timing
from .operators.common import Make

MODES = {"compile default": None, "compile max-autotune": "max-autotune-no-cudagraphs"}


class Wrong(Exception):
    """Incorrect results."""


class Bench:
    """One cell: tensors, expected results and contenders."""

    def __init__(self, cell, device):
        self.cell, self.operator = cell, operators.of(cell.plugin)
        self.inputs = self.operator.inputs(cell, Make(device))

    @functools.cached_property
    def expected(self):
        """Returns PyTorch's results with 64 bits, or the operator's own."""
        own = getattr(self.operator, "expected", None)
        if own:
            return own(self.cell, self.inputs)
        wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in self.inputs]
        return self.operator.eager(self.cell, wide)()

    def empty_outputs(self):
        """Returns outputs filled with impossible values."""
        outputs = self.operator.outputs(self.cell, self.inputs)
        return [torch.full(shape, float("nan") if dtype.is_floating_point else -7, dtype=dtype, device=self.inputs[0].device) for shape, dtype in outputs]

    def bytes_moved(self):
        return self.operator.bytes_moved(self.cell, self.inputs, self.empty_outputs())

    def verify(self, results):
        """Raises `Wrong` if a result exceeds the operator's tolerance."""
        compare = getattr(self.operator, "compare", None)
        if compare:
            text = compare(results, self.expected)
            if text:
                raise Wrong(text)
            return
        for number, (result, expected) in enumerate(zip(results, self.expected, strict=True)):
            if result.shape != expected.shape:
                raise Wrong(f"output {number} has the shape {list(result.shape)}, expected {list(expected.shape)}")
            atol, rtol = self.operator.TOLERANCE[result.dtype]
            difference = (result.double() - expected).abs_()
            # NaN is wrong too.
            wrong = ~(difference <= atol + rtol * expected.abs())
            count = int(wrong.sum())
            if count:
                worst = float(difference.nan_to_num(nan=torch.inf).max())
                raise Wrong(f"output {number}: {count} of {wrong.numel()} elements are off by more than {atol} + {rtol} x expected, by up to {worst:.3g}")

    def plugin(self, player, libraries):
        announced = getattr(self.operator, "ANNOUNCED", {})
        return ours.Plugin(player, libraries, self.cell.plugin, self.cell.attributes, self.inputs, self.empty_outputs(), announced)

    def eager(self):
        return self.operator.eager(self.cell, self.inputs)

    def compiled(self, mode):
        function, arguments = self.operator.to_compile(self.cell, self.inputs)
        compiled = torch.compile(function, mode=mode, dynamic=False)
        return lambda: compiled(*arguments)

    def triton(self):
        """Returns the configurations, which all write the same outputs."""
        outputs = self.empty_outputs()
        found = self.operator.triton_rivals(self.cell, self.inputs, outputs)
        return {name: returning(launch, outputs) for name, launch in found.items()}

    def best_of_triton(self):
        """Returns the fastest correct configuration, its name, and reasons for rejections."""
        times, refused = {}, {}
        candidates = self.triton()
        for name, call in candidates.items():
            try:
                for tensor in call.outputs:
                    tensor.fill_(-7)
                self.verify(call())
                times[name] = timing.quick(call)
            except Exception as error: # noqa: BLE001 - others may fit the GPU
                refused[name] = reason(error)
        if not times:
            raise Wrong(f"no configuration is correct; the first: {next(iter(refused.values()))}")
        best = min(times, key=times.get)
        return candidates[best], best, refused


def returning(launch, outputs):
    def call():
        launch()
        return outputs

    call.outputs = outputs
    return call


def reason(error):
    """Formats an error as one table line."""
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text}".splitlines()[0][:300] if not isinstance(error, (Wrong, ours.Refused)) else text.replace("\n", " ")[:300]
