#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

TRITON_CACHE_DIR=build/cache "${PYTHON:-python3}" kernel.py
cubinder compile softmax.toml -o build/libsoftmax.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" model.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libsoftmax.so --shape x=1x1:64x1000:1024x65536 "$@"
