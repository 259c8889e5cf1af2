#!/bin/sh
# Searches the GEMM family on a machine with a Hopper GPU: exactness, graphs of small squares, single launches of large ones, joules of the
# fastest, then the products of bench/shapes.json on the kernels chosen for them. About six minutes.
#
#   bench/tune.sh OUT [HEDDLE]
#
# Environment: HEDDLE_CUBLAS, the folder of libcublas, where it is not beside the python3 on the PATH. STEPS, which of "check small large sustained shapes" to run.
set -u
out=${1:?folder for results} heddle=${2:-bin/heddle}
mkdir -p "$out"
cublas=${HEDDLE_CUBLAS:+--cublas=$HEDDLE_CUBLAS}
log=$out/tune.log
: >"$log"
step() { # NAME SECONDS ARGUMENTS…: one command of heddle, its talk in the one log
	name=$1 limit=$2
	shift 2
	case " ${STEPS:-check small large sustained shapes} " in *" $name "*) ;; *) return ;; esac
	echo "== $name" >>"$log"
	timeout "$limit" "$heddle" "$@" >>"$log" 2>&1
	echo "$name: exit $?" | tee -a "$log"
}
step check 90 gemm check --limit=80s --stall=30s
grep 'ok=false' "$log" | tail -n 20
step small 70 gemm tune $cublas --graphs=512,1024 --limit=60s --out "$out/small.json"
step large 130 gemm tune $cublas --sizes=2048,4096,8192,16384 --limit=120s --out "$out/large.json"
best=$(awk '/^16384 single/ {f = 1; next} /^[0-9=]/ {f = 0} f && /joules/ {print $NF}' "$log" | head -n 5)
best=$(printf '%s\n' $best 128x256x64-w2-c2x1-s4-g8 128x256x64-w2-c2x1-s3-g8 256x128x64-w2-c1x2-s4-g8 256x192x64-w2-c1x2-s3-g8 128x192x64-w2-c2x1-s4-g8-pingpong | sort -u | paste -sd, -)
step sustained 80 gemm tune $cublas --sustained=8192 --limit=70s --configs="$best" --out "$out/sustained.json"
step shapes 110 gemm bench $cublas --shapes "${0%/*}/shapes.json" --pairs=5 --idle=10ms --limit=100s --stall=30s --out "$out/shapes.json"
rm -f "$out"/*.journal
cat "$out"/*.failed 2>/dev/null
awk '/^[0-9]+ (single|sustained|graph)/ {n = 9; f = 1} /^==/ {f = 0} f && n-- > 0' "$log"
