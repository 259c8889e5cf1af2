//go:build linux && !nogpu

#include "textflag.h"

// func trampolineAddr() unsafe.Pointer
TEXT ·trampolineAddr(SB),NOSPLIT,$0-8
	LEAQ trampoline<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// C calling convention: DI = *frame {fn, n, args}. Words 0..5 go to registers, the rest to the stack, 16-byte aligned at the call.
// AX = 0 at the call: a variadic function is told that no vector registers are used. The callee's EAX is our result.
TEXT trampoline<>(SB),NOSPLIT|NOFRAME,$0
	PUSHQ BP
	MOVQ  SP, BP
	MOVQ  0(DI), R10
	MOVQ  8(DI), AX
	MOVQ  16(DI), R11
	SUBQ  $6, AX
	JLE   registers
	MOVQ  AX, DX
	INCQ  DX
	ANDQ  $~1, DX        // an even number of words keeps SP aligned
	SHLQ  $3, DX
	SUBQ  DX, SP
	XORL  CX, CX
stack:
	MOVQ  48(R11)(CX*8), R9
	MOVQ  R9, (SP)(CX*8)
	INCQ  CX
	CMPQ  CX, AX
	JLT   stack
registers:
	MOVQ  0(R11), DI
	MOVQ  8(R11), SI
	MOVQ  16(R11), DX
	MOVQ  24(R11), CX
	MOVQ  32(R11), R8
	MOVQ  40(R11), R9
	XORL  AX, AX
	CALL  R10
	MOVQ  BP, SP
	POPQ  BP
	RET
