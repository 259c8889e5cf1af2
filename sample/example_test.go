package sample_test

import (
	"context"
	"fmt"
	"log"

	"heddle/checkpoint/pretrained"
	"heddle/compute/cpu/blas"
	"heddle/sample"
	"heddle/sample/cpu"
)

// Two continuations of a prompt. The hook stops each that has become sure of itself, and once goes back: where the model was
// least sure, a fork tries another stream.
func ExampleGenerate() {
	m, err := pretrained.Open("../internal/golden/testdata/qwen3-gqa")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	pool := blas.NewPool(2)
	defer pool.Close()
	d, err := cpu.New(m.Config, pool)
	if err != nil {
		log.Fatal(err)
	}
	if err := d.Load(m.Float32s, 7); err != nil { // 7: the version that tokens are stamped with
		log.Fatal(err)
	}
	forked := false
	hook := func(s *sample.State) (a sample.Action) {
		tokens := s.Sequence.Tokens
		if len(tokens) == 6 && !forked {
			unsure := 0
			for i, t := range tokens {
				if t.Entropy > tokens[unsure].Entropy {
					unsure = i
				}
			}
			forked = true
			a.Fork = []sample.Fork{{Keep: unsure, Stream: 100}}
		}
		a.Stop = tokens[len(tokens)-1].Entropy < 0.1
		return a
	}
	o := sample.Options{MaxTokens: 8, Temperature: 1, Seed: 3, Hook: hook}
	seqs, bill, err := sample.Generate(context.Background(), d, o, sample.Prompt{IDs: []int32{5, 17, 2}, Streams: []uint64{0, 1}})
	if err != nil {
		log.Fatal(err)
	}
	for i, s := range seqs {
		fmt.Printf("%d: parent %d, %d tokens, the first %d shared, version %d, ended by %s\n", i, s.Parent, len(s.Tokens), s.Shared, s.Tokens[0].Version, s.End)
	}
	fmt.Printf("%d drawn, %d kept\n", bill.Sampled, bill.Kept)
	// Output:
	// 0: parent -1, 8 tokens, the first 0 shared, version 7, ended by length
	// 1: parent -1, 8 tokens, the first 0 shared, version 7, ended by length
	// 2: parent 0, 8 tokens, the first 5 shared, version 7, ended by length
	// 19 drawn, 19 kept
}
