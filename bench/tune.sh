#!/bin/sh
# Searches the GEMM family on a machine with a Hopper GPU: exactness, single launches of large squares, graphs of small ones, then joules of the fastest. About four minutes.
#
#   bench/tune.sh OUT [HEDDLE]
#
# Environment: HEDDLE_CUBLAS, the folder of libcublas, where it is not beside the python3 on the PATH.
set -u
out=${1:?folder for results} heddle=${2:-bin/heddle}
mkdir -p "$out"
cublas=${HEDDLE_CUBLAS:+--cublas=$HEDDLE_CUBLAS}
timeout 100 "$heddle" gemm check --json --limit=80s --stall=30s >"$out/check.json" 2>"$out/check.log"
echo "gemm check: exit $?"
grep -v 'ok=true' "$out/check.log" | tail -n 20
timeout 140 "$heddle" gemm tune $cublas --sizes=2048,4096,8192,16384 --limit=130s --out "$out/large.json" >"$out/large.txt" 2>"$out/large.log"
echo "large: exit $?"
timeout 80 "$heddle" gemm tune $cublas --graphs=512,1024 --limit=70s --out "$out/small.json" >"$out/small.txt" 2>"$out/small.log"
echo "small: exit $?"
best=$(awk '/^8192 single/ {f = 1; next} /^[0-9]/ {f = 0} f {print $NF}' "$out/large.txt" | head -n 9 | paste -sd, -)
timeout 80 "$heddle" gemm tune $cublas --sustained=8192 --limit=70s --configs="128x256x64-w2-c2x1-s4-g8${best:+,$best}" --out "$out/sustained.json" >"$out/sustained.txt" 2>"$out/sustained.log"
echo "sustained: exit $?"
cat "$out"/*.failed 2>/dev/null
for f in large small sustained; do
	awk '/^[0-9]/ {n = 0} n++ < 9' "$out/$f.txt"
done
