#!/bin/sh
set -eu
cd "$(dirname "$0")"

for n in 1 10000 1000000; do
    cubinder compare build/model.plan --reference reference.py:above --shape x=$n "$@"
done
