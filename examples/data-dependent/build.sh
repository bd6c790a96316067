#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

cubinder compile above.toml -o build/libabove.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" model.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libabove.so --shape x=1:10000:1000000 "$@"
