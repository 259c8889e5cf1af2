// Package gguf reads GGUF files: metadata, tokenizer fields and tensors, dequantised to float32.
//
// Open gives a File: its Text, Uint, Float, Bool, Strings, Ints and Floats read metadata, Tensor finds a tensor. Open also checks everything a
// reader relies on: counts and lengths against the bytes that are left before anything is allocated, offsets against alignment, overlap and the end of
// the file. Versions 2 and 3, little-endian; types F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K; the rest is refused by name.
//
// OpenModel goes further: it turns the metadata of llama, qwen2 and qwen3 files into an hf.Config and reads weights by hf.Param, undoing the order
// of rows in which llama.cpp keeps the q and k of llama.
//
// Start reading at parse.go; blocks.go has the formats.
package gguf
