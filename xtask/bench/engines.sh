#!/bin/sh
# Measures what was prepared here, and leaves engine.json and enqueue.json in `out`. Needs a GPU, and a Python with TensorRT-RTX's bindings.
cd "$(dirname "$0")" || exit 1
for name in engine enqueue; do
    if [ -f $name.json ]; then "${PYTHON:-python3}" ${name}_bench.py . --out out || exit 1; fi
done
