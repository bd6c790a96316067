#!/bin/sh
set -eu
cd "$(dirname "$0")"

for shape in 1x2 64x2048 3x1002; do
    cubinder compare build/model.plan --reference reference.py:swiglu --shape x=$shape "$@"
done
