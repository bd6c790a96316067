"""Prints the versions of the NVRTC library in the argument and of TensorRT-RTX's bindings."""

import ctypes
import sys

import tensorrt_rtx_bindings

major, minor = ctypes.c_int(), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
print(f"NVRTC {major.value}.{minor.value}, TensorRT-RTX {tensorrt_rtx_bindings.__version__}")
