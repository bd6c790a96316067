#!/bin/sh
set -eu
cd "$(dirname "$0")"

for n in 1 512; do
    cubinder compare build/model.plan --reference reference.py:append \
        --shape rows=${n}x128 --input position=build/position.npy "$@"
done
