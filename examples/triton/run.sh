#!/bin/sh
set -eu
cd "$(dirname "$0")"

for shape in 1x1 64x1000 16x50000; do
    cubinder compare build/model.plan --reference reference.py:softmax --shape x=$shape "$@"
done
