#!/bin/bash
# Runs `parser-proof` for both routes and trtexec on two models (README.md). LD_LIBRARY_PATH has TensorRT's libraries;
# TRTEXEC is its trtexec. Writes parser-proof.tar.gz to $OUT. STOPS_AT is the error at which every build must stop;
# empty if builds must succeed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
stops=${STOPS_AT-libnvinfer_builder_resource}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
tar -C "$work" -xf "$here/inputs.tar.gz"
results=$work/results
mkdir "$results"
failed=0
limit=${LIMIT:-225}

# The smaller of a step's limit and the remaining time.
within() {
  local left=$((limit - SECONDS))
  # `timeout 0` means no limit.
  left=$((left < 1 ? 1 : left))
  echo $((left < $1 ? left : $1))
}

nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>&1 | tee "$results/gpu.txt"
(cd "$work" && sha256sum native/*.so plugin/*.so "$here/parser-proof") > "$results/sha256.txt" 2>&1

proof() { # ROUTE KIND LIST PHASE SECONDS OPTIONS...
  local name=$3-$1-$4 route=$1 kind=$2 list=$3 seconds
  seconds=$(within "$5")
  shift 5
  echo "== $name"
  if [ "$seconds" -lt 3 ]; then
    echo "left out: no time"
    failed=1
    return
  fi
  local start=$SECONDS
  timeout -k 5 "$seconds" "$here/parser-proof" --list "$work/models/$list.$route" --libraries "$work/$route" --kind "$kind" \
    --table "$results/$name.txt" --json "$results/$name.jsonl" "$@" > "$results/$name.summary" 2> "$results/$name.stderr"
  local code=$?
  cut -c1-1000 "$results/$name.summary"
  head -c 400 "$results/$name.stderr"
  if [ $code -gt 3 ]; then
    echo "ended in: $(tail -n 1 "$results/$name.txt" | cut -c1-200)"
  fi
  echo "exit code $code, $((SECONDS - start)) s" | tee -a "$results/$name.summary"
  [ $code -eq 0 ] || failed=1
}

all() { # PHASE SECONDS OPTIONS...
  local phase=$1 seconds=$2 route list
  shift 2
  for route in native:V3QUICK plugin:V3ONE; do
    for list in plugins circ_pad; do
      proof "${route%:*}" "${route#*:}" $list "$phase" "$seconds" "$@"
    done
  done
}

all parse 40

# TensorRT's trtexec: a model with a library of each route.
for route in native plugin; do
  aot=$([ $route = native ] && echo 1 || echo absent)
  model=$work/models/plugins-circ_pad_plugin-f32-images-$aot.onnx
  timeout -k 5 "$(within 20)" "$TRTEXEC" --onnx="$model" --dynamicPlugins="$work/$route/libplugins.so" --stronglyTyped --verbose \
    --skipInference --saveEngine="$work/engine.plan" > "$results/trtexec-$route.txt" 2>&1
  echo "== trtexec, $route, aot $aot: exit code $?"
  grep -E 'Successfully created plugin|\[E\]' "$results/trtexec-$route.txt" | cut -c1-200 | head -n 4
done

all build 50 --build --stops-at "$stops" --seconds 35

tar -C "$results" -czf "$out/parser-proof.tar.gz" .
echo "everything as expected: $([ $failed -eq 0 ] && echo yes || echo no); $SECONDS s"
exit $failed
