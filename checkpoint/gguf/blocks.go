package gguf

import (
	"fmt"
	"math"

	"heddle/num"
)

// Type is how a tensor's elements are stored; the number is the file's.
type Type uint32

// The types read. A quantised row is cut into blocks, each with its own scale.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2  // 32 elements: scale d; d·(q-8), q of 4 bits
	Q4_1 Type = 3  // 32 elements: scale d, minimum m; d·q + m
	Q8_0 Type = 8  // 32 elements: scale d; d·q, q of 8 bits
	Q4_K Type = 12 // 256 elements: scales d and dmin, for each 32 a scale s and a minimum m of 6 bits; d·s·q - dmin·m
	Q6_K Type = 14 // 256 elements: scale d, for each 16 a scale s of 8 bits; d·s·(q-32), q of 6 bits
	BF16 Type = 30
)

// block is the number of elements in a block, and of its bytes; 0 bytes for a type that is not supported.
func (t Type) block() (elements, bytes int) {
	switch t {
	case F32:
		return 1, 4
	case F16, BF16:
		return 1, 2
	case Q4_0:
		return 32, 2 + 16
	case Q4_1:
		return 32, 2 + 2 + 16
	case Q8_0:
		return 32, 2 + 32
	case Q4_K:
		return 256, 2 + 2 + 12 + 128
	case Q6_K:
		return 256, 128 + 64 + 16 + 2
	}
	return 1, 0
}

// String is ggml's name of the type.
func (t Type) String() string {
	names := map[Type]string{F32: "F32", F16: "F16", Q4_0: "Q4_0", Q4_1: "Q4_1", 6: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", Q4_K: "Q4_K", 13: "Q5_K",
		Q6_K: "Q6_K", 15: "Q8_K", 28: "F64", BF16: "BF16", 39: "MXFP4"}
	if s, ok := names[t]; ok {
		return s
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// decode dequantises one block. All products are exact in float32 (11-bit scale × at most 8-bit s × at most 6-bit q), so only the one sum of Q4_1 and
// Q4_K rounds, and Q6_K where d·s·q needs more than 24 bits.
func (t Type) decode(src []byte, dst []float32) {
	switch t {
	case Q8_0:
		d := half(src)
		for i, q := range src[2:] {
			dst[i] = d * float32(int8(q))
		}
	case Q4_0:
		d := half(src)
		for i, q := range src[2:] { // low nibbles are the first half, high ones the second
			dst[i] = d * float32(int(q&15)-8)
			dst[i+16] = d * float32(int(q>>4)-8)
		}
	case Q4_1:
		d, m := half(src), half(src[2:])
		for i, q := range src[4:] {
			dst[i] = float32(d*float32(q&15)) + m
			dst[i+16] = float32(d*float32(q>>4)) + m
		}
	case Q4_K:
		decodeQ4K(src, dst)
	case Q6_K:
		decodeQ6K(src, dst)
	}
}

// widen converts elements of the types that are not quantised.
func (t Type) widen(src []byte, dst []float32) {
	for i := range dst {
		switch t {
		case F32:
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		case F16:
			dst[i] = num.FromF16(le.Uint16(src[2*i:]))
		case BF16:
			dst[i] = num.FromBF16(le.Uint16(src[2*i:]))
		}
	}
}

// decodeQ4K: d, dmin, 12 bytes with the eight 6-bit scales and minima, then for each pair of 32 elements 32 bytes: low nibbles the first, high ones the second.
func decodeQ4K(src []byte, dst []float32) {
	d, dmin, packed, q := half(src), half(src[2:]), src[4:16], src[16:]
	for j := range 8 {
		s, m := packed[j&3]&63, packed[j&3+4]&63
		if j >= 4 { // the upper two bits come from where j-4 keeps its own
			s = packed[j+4]&15 | packed[j-4]>>6<<4
			m = packed[j+4]>>4 | packed[j]>>6<<4
		}
		scale, low := d*float32(s), dmin*float32(m)
		for i := range 32 {
			nibble := q[j/2*32+i] >> (j % 2 * 4) & 15
			dst[j*32+i] = float32(scale*float32(nibble)) - low
		}
	}
}

// decodeQ6K: for each half of 128 elements 64 bytes of low nibbles, then for each half 32 bytes of upper bit pairs, 16 scales, d.
func decodeQ6K(src []byte, dst []float32) {
	d, scales := half(src[208:]), src[192:208]
	for i := range dst {
		h, quarter, l := i/128, i/32%4, i%32
		low := src[h*64+quarter%2*32+l] >> (quarter / 2 * 4) & 15
		high := src[128+h*32+l] >> (quarter * 2) & 3
		s := float32(int8(scales[i/16]))
		dst[i] = float32(d*s) * float32(int(low|high<<4)-32)
	}
}

// half is the float16 number that a block keeps at the start of b.
func half(b []byte) float32 { return num.FromF16(le.Uint16(b)) }
