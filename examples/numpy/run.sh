#!/bin/sh
set -eu
cd "$(dirname "$0")"

for n in 1 1000 100000; do
    cubinder compare build/model.plan --reference reference.py:cross --shape a=${n}x3 --shape b=${n}x3 "$@"
done
