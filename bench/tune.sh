#!/bin/sh
# Searches the GEMM family on a machine with a Hopper GPU: exactness, single launches of large squares, graphs of small ones, then joules of the fastest. About five minutes.
#
#   bench/tune.sh OUT [HEDDLE]
#
# Environment: HEDDLE_CUBLAS, the folder of libcublas, where it is not beside the python3 on the PATH.
set -u
out=${1:?folder for results} heddle=${2:-bin/heddle}
mkdir -p "$out"
cublas=${HEDDLE_CUBLAS:+--cublas=$HEDDLE_CUBLAS}
log=$out/tune.log
: >"$log"
step() { # NAME SECONDS ARGUMENTS…: one command of heddle, its talk in the one log
	name=$1 limit=$2
	shift 2
	echo "== $name" >>"$log"
	timeout "$limit" "$heddle" "$@" >>"$log" 2>&1
	echo "$name: exit $?" | tee -a "$log"
}
step check 90 gemm check --limit=80s --stall=30s
grep 'ok=false' "$log" | tail -n 20
step small 70 gemm tune $cublas --graphs=512,1024 --limit=60s --out "$out/small.json"
step large 130 gemm tune $cublas --sizes=2048,4096,8192,16384 --limit=120s --out "$out/large.json"
best=$(awk '/^16384 single/ {f = 1; next} /^[0-9=]/ {f = 0} f && /joules/ {print $NF}' "$log" | head -n 6 | paste -sd, -)
step sustained 80 gemm tune $cublas --sustained=8192 --limit=70s --configs="128x256x64-w2-c2x1-s4-g8${best:+,$best}" --out "$out/sustained.json"
rm -f "$out"/*.journal
cat "$out"/*.failed 2>/dev/null
awk '/^[0-9]+ (single|sustained|graph)/ {n = 9; f = 1} /^==/ {f = 0} f && n-- > 0' "$log"
