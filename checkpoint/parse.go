package checkpoint

import (
	"fmt"
	"slices"

	"heddle/internal/strictjson"
)

const (
	maxManifest = 1 << 28 // bytes
	maxWorld    = 1 << 16 // ranks
)

// parseManifest reads what encode wrote, and trusts none of it: sizes, boxes and coverage are checked like those of a stranger's file.
func parseManifest(text []byte) (Manifest, error) {
	var m Manifest
	var shards []Shard
	r := strictjson.New(text)
	err := object(r, map[string]func() error{
		"format": func() error {
			at := r.Offset()
			s, err := r.String()
			if err == nil && s != formatName {
				err = strictjson.Errorf(at, "format is %.60q, want %q", s, formatName)
			}
			return err
		},
		"meta":    func() error { return parseMeta(r, &m.Meta) },
		"tensors": func() error { return parseTensors(r, &m) },
		"shards":  func() error { return parseShards(r, m.Tensors, &shards) },
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return Manifest{}, err
	}
	got, err := assemble(m.Meta, shards)
	if err == nil && !slices.EqualFunc(got.Tensors, m.Tensors, func(a, b Tensor) bool { return a.Name == b.Name }) {
		err = fmt.Errorf("the list of tensors is not sorted, or no rank holds one of them")
	}
	return got, err
}

// object reads an object that has exactly these members.
func object(r *strictjson.Reader, members map[string]func() error) error {
	at := r.Offset()
	seen := 0
	err := r.Object(func(key string) error {
		read, ok := members[key]
		if !ok {
			return strictjson.Errorf(r.Offset(), "unknown field %.60q", key)
		}
		seen++
		return read()
	})
	if err == nil && seen != len(members) {
		err = strictjson.Errorf(at, "got %d fields, want %d", seen, len(members))
	}
	return err
}

func text(r *strictjson.Reader, to *string) func() error {
	return func() (err error) { *to, err = r.String(); return err }
}

// size reads an integer from 0 to limit.
func size[T int | int64](r *strictjson.Reader, to *T, limit T) func() error {
	return func() error {
		at := r.Offset()
		v, err := r.Int()
		if err == nil && (v < 0 || int64(v) > int64(limit)) {
			err = strictjson.Errorf(at, "%d is not within 0 to %d", v, limit)
		}
		*to = T(v)
		return err
	}
}

func texts(r *strictjson.Reader, to *map[string]string) func() error {
	return func() error {
		*to = map[string]string{}
		return r.Object(func(key string) (err error) { (*to)[key], err = r.String(); return err })
	}
}

func parseMeta(r *strictjson.Reader, m *Meta) error {
	return object(r, map[string]func() error{
		"run": text(r, &m.Run), "step": size(r, &m.Step, maxStep), "world": size(r, &m.World, maxWorld), "layout": text(r, &m.Layout),
		"identity": texts(r, &m.Identity), "state": texts(r, &m.State),
	})
}

func parseTensors(r *strictjson.Reader, m *Manifest) error {
	return r.Array(func(int) error {
		var t Tensor
		at := r.Offset()
		err := object(r, map[string]func() error{
			"name": text(r, &t.Name), "dtype": text(r, (*string)(&t.DType)),
			"shape": func() error {
				return r.Array(func(int) error {
					t.Shape = append(t.Shape, 0)
					return size(r, &t.Shape[len(t.Shape)-1], 1<<40)()
				})
			},
		})
		if err == nil && !t.sound() {
			err = strictjson.Errorf(at, "tensor %.60q: %s%v is no tensor", t.Name, t.DType, t.Shape)
		}
		m.Tensors = append(m.Tensors, t)
		return err
	})
}

// sound tells whether type and shape are possible and the number of elements does not overflow.
func (t Tensor) sound() bool {
	n := 1
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > (1<<50)/d {
			return false
		}
		n *= max(d, 1)
	}
	return t.DType.Size() > 0 && len(t.Shape) <= 16
}

func parseShards(r *strictjson.Reader, tensors []Tensor, shards *[]Shard) error {
	byName := make(map[string]Tensor, len(tensors))
	for _, t := range tensors {
		byName[t.Name] = t
	}
	return r.Array(func(i int) error {
		s, err := parseShard(r, byName)
		*shards = append(*shards, s)
		return err
	})
}

// parseShard reads one shard; byName gives type and shape of what it holds.
func parseShard(r *strictjson.Reader, byName map[string]Tensor) (Shard, error) {
	var s Shard
	var file string
	at := r.Offset()
	err := object(r, map[string]func() error{
		"rank": size(r, &s.Rank, maxWorld), "file": text(r, &file), "bytes": size(r, &s.Bytes, 1<<62), "sha256": text(r, &s.SHA256),
		"held": func() error {
			return r.Array(func(int) error {
				h, err := parseHeld(r, byName)
				s.Held = append(s.Held, h)
				return err
			})
		},
	})
	if err == nil && file != rankFile(s.Rank) {
		err = strictjson.Errorf(at, "file of rank %d is %.60q, want %q", s.Rank, file, rankFile(s.Rank))
	}
	return s, err
}

func parseHeld(r *strictjson.Reader, byName map[string]Tensor) (Held, error) {
	var h Held
	var name string
	var boxes []Box
	at := r.Offset()
	err := object(r, map[string]func() error{
		"name": text(r, &name),
		"boxes": func() error {
			return r.Array(func(int) error {
				var b Box
				err := r.Array(func(i int) error {
					to := &b.Lo
					if i%2 == 1 {
						to = &b.Hi
					}
					*to = append(*to, 0)
					return size(r, &(*to)[i/2], 1<<40)()
				})
				boxes = append(boxes, b)
				return err
			})
		},
	})
	if err != nil {
		return h, err
	}
	t, ok := byName[name]
	if !ok {
		return h, strictjson.Errorf(at, "tensor %.60q is not in the list of tensors", name)
	}
	for _, b := range boxes {
		if err := b.check(len(t.Shape)); err != nil {
			return h, strictjson.Errorf(at, "tensor %.60q: %v", name, err)
		}
		for d := range b.Hi {
			if b.Hi[d] > t.Shape[d] {
				return h, strictjson.Errorf(at, "tensor %.60q: box %v to %v ends outside %v", name, b.Lo, b.Hi, t.Shape)
			}
		}
	}
	return Held{t, boxes}, nil
}
