#!/bin/sh
# The GEMM labs on a machine with a Hopper GPU: the ladder, tile orders, depth, epilogues, fp8, experts, compile times. About four minutes.
#
#   bench/lab.sh OUT [HEDDLE]
#
# Environment: HEDDLE_CUBLAS, the folder of libcublas, where it is not beside the python3 on the PATH. STEPS, which of "jit ladder fp8 blocks epilogues orders depth heads experts ncu" to
# run; PYTHON, one with PyTorch, for experts.
set -u
out=${1:?folder for results} heddle=${2:-bin/heddle} here=${0%/*}
mkdir -p "$out"
cublas=${HEDDLE_CUBLAS:+--cublas=$HEDDLE_CUBLAS}
wanted() { case " ${STEPS:-jit ladder fp8 blocks epilogues orders depth heads experts} " in *" $1 "*) ;; *) return 1 ;; esac; }
step() { # NAME SECONDS ARGUMENTS…: one command of heddle
	name=$1 limit=$2
	shift 2
	wanted "$name" || return
	timeout "$limit" "$heddle" "$@" >"$out/$name.txt" 2>"$out/$name.log"
	echo "$name: exit $?"
	cat "$out/$name.txt"
}
tune() { # NAME SECONDS ARGUMENTS…: a search
	name=$1 limit=$2
	shift 2
	step "$name" "$limit" gemm tune $cublas --limit="$((limit - 1))s" --stall=12s --out "$out/$name.json" "$@"
}
export CUDA_CACHE_PATH="$out/jit-cache"
step jit 20 gemm jit --cache "$CUDA_CACHE_PATH/own" # without any cache
step jit 20 gemm jit --cache "$CUDA_CACHE_PATH/own" # with both
step ladder 40 gemm ladder $cublas --size=4096 --limit=39s --out "$out/ladder.json"
tune fp8 30 --shapes "$here/lab/fp8.json" --configs "@$here/lab/fp8.txt" --idle=50ms
tune blocks 12 --shapes "$here/lab/blocks.json" --configs "@$here/lab/blocks.txt" --idle=50ms
tune epilogues 20 --sizes=4096 --configs "@$here/lab/epilogues.txt" --idle=15ms
tune orders 60 --sizes=8192 --configs "@$here/lab/orders.txt" --pairs=5 --idle=5ms
tune depth 25 --sizes=4096 --configs "@$here/lab/depth.txt" --pairs=7 --idle=5ms
tune heads 50 --shapes "$here/shapes.json" --match head --configs "@$here/lab/heads.txt" --pairs=3
if wanted experts; then
	"$heddle" gemm grouped --configs 128x256x64-w2-c1x1-s3-g8-b4,128x256x64-w2-c2x1-s4-g8,256x192x64-w2-c1x1-s3-g8,128x192x64-w2-c1x1-s4-g8-pingpong "$out/experts" &&
		timeout 60 "${PYTHON:-python3}" "$here/grouped.py" "$out/experts" "$out/grouped.json" 9
fi
if wanted ncu; then
	timeout 60 ncu --clock-control none -k gemm --csv --metrics lts__t_sector_hit_rate.pct,lts__t_sectors_op_read.sum,dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum \
		"$heddle" gemm run $cublas --size 8192 --configs "@$here/lab/ncu.txt" >"$out/ncu.csv"
fi
