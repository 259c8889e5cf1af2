#!/bin/sh
# Measures on a machine with a Hopper GPU: everything in one call, each step under a time limit, results as JSON in the folder given.
#
#   bench/device.sh OUT [KERNEL.ptx [HEDDLE]]
#
# KERNEL.ptx is a further kernel to measure (- for none); HEDDLE is the binary, bin/heddle by default, built with CGO_ENABLED=0 go build -o bin/heddle ./cmd/heddle.
# Environment: HEDDLE_CUBLAS, the folder of libcublas, where it is not beside the python3 on the PATH. QUICK=1 takes a minute instead of seven.
set -u
out=${1:?folder for results} kernel=${2:--} heddle=${3:-bin/heddle}
mkdir -p "$out"
ptx=
[ "$kernel" = - ] || ptx="--ptx $kernel"
cublas=${HEDDLE_CUBLAS:+--cublas=$HEDDLE_CUBLAS}
if [ "${QUICK:-0}" = 1 ]; then
	shapes="--sizes=1024,4096,8192 --sustained=8192 --graphs=1024 --pairs=10 --rounds=2 --limit=90s"
else
	shapes="--rounds=4 --limit=420s"
fi
timeout 70 "$heddle" doctor --json $cublas >"$out/doctor.json"
echo "doctor: exit $?"
timeout 250 "$heddle" gemm check --json --limit=120s --stall=30s >"$out/check.json" 2>"$out/check.log"
code=$?
echo "gemm check: exit $code"
tail -n 3 "$out/check.log"
# A kernel of ours that is wrong or hangs must not keep the other from being measured.
[ $code = 0 ] || [ -z "$ptx" ] || ptx="$ptx --ptx-only"
timeout 100 "$heddle" gemm banks --json >"$out/banks.json" 2>"$out/banks.log"
echo "gemm banks: exit $?"
timeout 480 "$heddle" gemm bench $ptx $cublas $shapes --stall=45s --out "$out/gemm.json" >"$out/gemm.txt" 2>"$out/gemm.log"
code=$?
echo "gemm bench: exit $code"
tail -n 25 "$out/gemm.log"
cat "$out/gemm.txt"
exit $code
