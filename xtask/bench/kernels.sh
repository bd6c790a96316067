#!/bin/sh
# Measures, and leaves kernels.json in the folder that --out names, or in `out`. Needs a GPU, and a Python with PyTorch, torchvision and Triton.
cd "$(dirname "$0")" || exit 1
exec "${PYTHON:-python3}" -m kernel_bench --cases cases --player ./libplayer.so --libraries ./libkernels.so ./libcubinder.so --out out "$@"
