//go:build linux && !nogpu

#include "textflag.h"

// func trampolineAddr() unsafe.Pointer
TEXT ·trampolineAddr(SB),NOSPLIT,$0-8
	MOVD $trampoline<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// AAPCS64: R0 = *frame {fn, n, args}. Words 0..7 go to registers, the rest to the stack, 16-byte aligned. The callee's W0 is our result.
TEXT trampoline<>(SB),NOSPLIT|NOFRAME,$0
	STP.W (R29, R30), -16(RSP)
	MOVD  RSP, R29
	MOVD  0(R0), R16
	MOVD  8(R0), R9
	MOVD  16(R0), R10
	SUBS  $8, R9, R9
	BLE   registers
	ADD   $1, R9, R11
	AND   $~1, R11, R11      // an even number of words keeps RSP aligned
	LSL   $3, R11, R11
	MOVD  RSP, R12
	SUB   R11, R12, R12
	MOVD  R12, RSP
	ADD   $64, R10, R13
stack:
	MOVD.P 8(R13), R14
	MOVD.P R14, 8(R12)
	SUBS  $1, R9, R9
	BGT   stack
registers:
	LDP   0(R10), (R0, R1)
	LDP   16(R10), (R2, R3)
	LDP   32(R10), (R4, R5)
	LDP   48(R10), (R6, R7)
	CALL  (R16)
	MOVD  R29, RSP
	LDP.P 16(RSP), (R29, R30)
	RET
