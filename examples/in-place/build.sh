#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

cubinder compile append.toml -o build/libappend.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" model.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libappend.so --shape rows=1x128:1x128:512x128 "$@"
