// Package checkpoint keeps training checkpoints: a folder a step, written by all ranks, complete or not there, readable under any other layout.
//
// A checkpoint is the folder step-00000042 with one safetensors file a rank, manifest.json (what the tensors are, which rank holds which part, hashes of
// the files, fingerprints of the run) and COMPLETE (the hash of the manifest). It is written under a temporary name, synced and renamed.
//
// Saving: one rank calls Store.Begin, every rank Store.WriteShard, then one of them Store.Commit with what all of them returned. A rank says what it
// holds as Parts: a flat range of a box of a global tensor; padding beyond the tensor's shape never reaches a file. Resuming: Latest gives the newest
// checkpoint that is whole and names the damaged ones it passed over, Meta.Same compares fingerprints, and Checkpoint.Read fills any range of any box, so the
// layout that reads need not be the one that wrote.
//
// The package knows nothing of models, optimisers or ranks that talk: names, values and the gathering of Shards are the caller's.
// Start reading at box.go, then write.go and read.go. FORMAT.md describes the files.
package checkpoint
