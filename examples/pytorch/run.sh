#!/bin/sh
set -eu
cd "$(dirname "$0")"

# TensorRT and PyTorch may use TF32 in convolutions.
for reference in with_plugin with_pytorch; do
    cubinder compare build/model.plan --reference reference.py:$reference --atol 5e-3 "$@"
done
