#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

cubinder compile swiglu.toml -o build/libswiglu.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" model.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libswiglu.so --shape x=1x2:64x2048:512x22016 "$@"
