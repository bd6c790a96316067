#!/bin/sh
set -eu
cd "$(dirname "$0")"
mkdir -p build

cubinder compile snake.toml -o build/libsnake.so --target "${TARGETS:-sm_80,sm_89,sm_90,compute_80}"
"${PYTHON:-python3}" export.py
cubinder build build/model.onnx -o build/model.plan --plugins build/libsnake.so --shape x=1x8x1:2x8x1000:8x8x16000 "$@"
