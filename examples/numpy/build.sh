#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

cubinder compile cross.toml -o build/libcross.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" model.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libcross.so \
    --shape a=1x3:1000x3:100000x3 --shape b=1x3:1000x3:100000x3 "$@"
