package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/checkpoint/safetensors"
)

// Meta is what a checkpoint says about the run it belongs to.
type Meta struct {
	Run      string            `json:"run"`      // an id that no other run has
	Step     int               `json:"step"`     // steps done
	World    int               `json:"world"`    // ranks, each with a file
	Layout   string            `json:"layout"`   // for people; a checkpoint is read under any layout
	Identity map[string]string `json:"identity"` // what must be the same to go on: config, data, tokenizer, seed, schedule …
	State    map[string]string `json:"state"`    // what goes on: random numbers, data cursor …
}

// Tensor is a global tensor.
type Tensor struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int             `json:"shape"`
}

// Held is what one rank's file holds of a tensor: the elements of the boxes, one box after the other.
type Held struct {
	Tensor
	Boxes []Box
}

// Shard describes one rank's file.
type Shard struct {
	Rank   int
	Bytes  int64
	SHA256 string // hexadecimal
	Held   []Held
}

// Manifest is the whole of manifest.json.
type Manifest struct {
	Meta
	Tensors []Tensor // sorted by name
	Shards  []Shard  // by rank
}

// assemble makes the manifest of a checkpoint, and checks that its shards hold every element of every tensor exactly once.
func assemble(m Meta, shards []Shard) (Manifest, error) {
	out := Manifest{Meta: m, Shards: slices.Clone(shards)}
	slices.SortFunc(out.Shards, func(a, b Shard) int { return a.Rank - b.Rank })
	if len(shards) != m.World {
		return out, fmt.Errorf("%d shards for %d ranks", len(shards), m.World)
	}
	byName := map[string]Tensor{}
	for i, s := range out.Shards {
		if s.Rank != i {
			return out, fmt.Errorf("rank %d has no shard, or another has two", i)
		}
		for _, h := range s.Held {
			t, ok := byName[h.Name]
			if ok && (t.DType != h.DType || !slices.Equal(t.Shape, h.Shape)) {
				return out, fmt.Errorf("tensor %s is %s%v on rank %d and %s%v on an earlier one", h.Name, h.DType, h.Shape, i, t.DType, t.Shape)
			}
			byName[h.Name] = h.Tensor
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out.Tensors = append(out.Tensors, byName[name])
	}
	return out, out.cover()
}

// cover checks that the boxes of each tensor neither overlap nor leave holes: they do not meet, and their sizes add up.
func (m Manifest) cover() error {
	type owned struct {
		box  Box
		rank int
	}
	boxes := map[string][]owned{}
	for _, s := range m.Shards {
		for _, h := range s.Held {
			for _, b := range h.Boxes {
				boxes[h.Name] = append(boxes[h.Name], owned{b, s.Rank})
			}
		}
	}
	for _, t := range m.Tensors {
		sum := 0
		// Sorted by where they start in the first dim, a box can meet only those that start before it ends: quick for the usual cuts.
		list := boxes[t.Name]
		slices.SortFunc(list, func(a, b owned) int { return slices.Compare(a.box.Lo, b.box.Lo) })
		for i, x := range list {
			sum += x.box.Len()
			for _, y := range list[i+1:] {
				if len(x.box.Lo) > 0 && y.box.Lo[0] >= x.box.Hi[0] {
					break
				}
				if x.box.meets(y.box) {
					return fmt.Errorf("tensor %s: ranks %d and %d both hold elements from %v on; hint: only one replica writes", t.Name, x.rank, y.rank, x.box.Meet(y.box).Lo)
				}
			}
		}
		if all := Whole(t.Shape).Len(); sum != all {
			return fmt.Errorf("tensor %s: the ranks hold %d of %d elements", t.Name, sum, all)
		}
	}
	return nil
}

// shardJSON and heldJSON are the text form: a box is [lo, hi, lo, hi, …].
type shardJSON struct {
	Rank   int        `json:"rank"`
	File   string     `json:"file"`
	Bytes  int64      `json:"bytes"`
	SHA256 string     `json:"sha256"`
	Held   []heldJSON `json:"held"`
}

type heldJSON struct {
	Name  string  `json:"name"`
	Boxes [][]int `json:"boxes"`
}

// encode makes manifest.json: a line a tensor and a line a shard's tensor, so that two of them can be compared with diff.
func (m Manifest) encode() ([]byte, error) {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	var bad error
	text := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			bad = err
		}
		return string(out)
	}
	if m.Identity == nil {
		m.Identity = map[string]string{}
	}
	if m.State == nil {
		m.State = map[string]string{}
	}
	put("{\n\"format\": %q,\n\"meta\": %s,\n\"tensors\": [", formatName, text(m.Meta))
	for i, t := range m.Tensors {
		put("%s\n%s", comma(i), text(t.plain()))
	}
	put("\n],\n\"shards\": [")
	for i, s := range m.Shards {
		put("%s\n{\"rank\": %d, \"file\": %q, \"bytes\": %d, \"sha256\": %q, \"held\": [", comma(i), s.Rank, rankFile(s.Rank), s.Bytes, s.SHA256)
		for j, h := range s.Held {
			put("%s\n%s", comma(j), text(heldJSON{h.Name, pairs(h.Boxes)}))
		}
		put("\n]}")
	}
	put("\n]\n}\n")
	return []byte(b.String()), bad
}

// plain is the tensor with a shape that JSON writes as a list even when it is empty.
func (t Tensor) plain() Tensor {
	t.Shape = append([]int{}, t.Shape...)
	return t
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func pairs(boxes []Box) [][]int {
	out := make([][]int, len(boxes))
	for i, b := range boxes {
		out[i] = []int{}
		for d := range b.Lo {
			out[i] = append(out[i], b.Lo[d], b.Hi[d])
		}
	}
	return out
}

const (
	formatName   = "heddle checkpoint 1"
	manifestName = "manifest.json"
	completeName = "COMPLETE"
)

func rankFile(rank int) string { return fmt.Sprintf("rank-%05d.safetensors", rank) }
