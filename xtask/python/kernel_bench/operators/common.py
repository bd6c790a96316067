"""Shared code of the operators."""

import math

import torch


class Make:
    """Creates a cell's tensors, equal in every run."""

    def __init__(self, device, seed=0):
        self.device = device
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def normal(self, shape, dtype):
        return torch.randn(shape, generator=self.generator, device=self.device).to(dtype)

    def uniform(self, shape, dtype):
        return torch.rand(shape, generator=self.generator, device=self.device).to(dtype)

    def permutation(self, count):
        return torch.randperm(count, generator=self.generator, device=self.device)

    def integers(self, shape, most, dtype):
        """Returns integers in [0, most)."""
        return torch.randint(0, most, shape, generator=self.generator, device=self.device).to(dtype)

    def array(self, values, shape, dtype):
        return torch.tensor(values, dtype=dtype, device=self.device).reshape(shape)


def size(*tensors):
    """Returns the total bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def power_of_two(number):
    return 1 << max(number - 1, 0).bit_length()


def ceil_div(a, b):
    return math.ceil(a / b)


def early(configurations):
    """Returns each configuration plain and, since compute capability 9.0, with programmatic dependent launch."""
    can = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)
    return [{**one, "EARLY": flag} for one in configurations for flag in ((False, True) if can else (False,))]


def options(configuration):
    """Returns the launch options of a configuration."""
    return {"launch_pdl": True} if configuration.get("EARLY") else {}


def called(configuration):
    return " ".join(f"{name}={value}" for name, value in configuration.items())
