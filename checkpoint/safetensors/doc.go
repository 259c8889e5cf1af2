// Package safetensors reads and writes safetensors files, single or sharded with a Hugging Face index.
//
// Reading: Open gives a File, OpenModel a Model (model.safetensors, or the shards that model.safetensors.index.json names). Both give a
// Tensor by name; its Float32s, Float64s, Int64s and Bytes read all of it, its Read… methods a range of rows. Values are converted from the
// type in the file; a conversion that would lose an integer is an error.
//
// Writing: Write streams one file to an io.Writer, WriteFile makes it appear at a path whole or not at all, WriteModel cuts into shards.
// The bytes written depend on names, types, shapes and values only, and equal those of the reference writer.
//
// The reader is strict. It refuses headers over 100 MB or longer than the file, shapes whose size overflows or differs from the data, ranges that
// overlap, leave holes or bytes over, and text that is not UTF-8, as the reference does (compared on 78 files); and where the reference lets pass: a name or
// key that occurs twice, unknown fields, space before the header's brace, more than 64 dimensions, types that are not converted. Nothing is allocated by a size read from a file before that size was compared with the file's own.
// It reads with ReadAt, not mmap: a file cut short while it is read is an error, not a signal. A name is never used as a path.
//
// Start reading at header.go.
package safetensors
