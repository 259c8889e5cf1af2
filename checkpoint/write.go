package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heddle/checkpoint/safetensors"
	"heddle/internal/atomicfile"
	"heddle/internal/strictjson"
)

// Store is the folder that holds a run's checkpoints. It must exist.
type Store struct {
	FS   atomicfile.FS // atomicfile.OS{} outside tests
	Root string
	Keep int // complete checkpoints that stay when a new one is there; 0: all
}

// Part is what a rank holds of one tensor: elements [From, To) of Box, counted row-major. The box may reach beyond Shape: that is padding.
type Part struct {
	Tensor
	Box      Box
	From, To int
}

const maxStep = 99_999_999 // what the folder's name has room for

// Begin makes the temporary folder in which a checkpoint is written, and returns its path. One rank calls it and tells the others.
func (s Store) Begin(step int) (dir string, err error) {
	if step < 0 || step > maxStep {
		return "", fmt.Errorf("checkpoint: step %d, want 0 to %d", step, maxStep)
	}
	names, err := s.FS.List(s.Root)
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	if slices.Contains(names, stepName(step)) {
		return "", fmt.Errorf("checkpoint: %s is already there; hint: resume from it, or drop it first", filepath.Join(s.Root, stepName(step)))
	}
	dir = atomicfile.Temp(filepath.Join(s.Root, stepName(step)))
	if err := s.FS.Mkdir(dir); err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	return dir, nil
}

// WriteShard writes a rank's file into the folder that Begin made. values gives the To - From elements of a part, padding included, and is called for
// one part after the other. A rank that holds nothing writes an empty file.
func (s Store) WriteShard(dir string, m Meta, rank int, parts []Part, values func(Part) ([]float64, error)) (Shard, error) {
	shard := Shard{Rank: rank}
	data := 0 // bytes
	byName := make(map[string]Part, len(parts))
	var specs []safetensors.Spec
	for _, p := range parts {
		if err := p.check(); err != nil {
			return shard, fmt.Errorf("checkpoint: rank %d: tensor %s: %w", rank, p.Name, err)
		}
		byName[p.Name] = p
		h := Held{p.Tensor, p.boxes()}
		n := 0
		for _, b := range h.Boxes {
			n += b.Len()
		}
		if n == 0 {
			continue
		}
		data += n * p.DType.Size()
		shard.Held = append(shard.Held, h)
		specs = append(specs, safetensors.Spec{Name: p.Name, DType: p.DType, Shape: []int{n}})
	}
	slices.SortFunc(shard.Held, func(a, b Held) int { return strings.Compare(a.Name, b.Name) })
	hash, count := sha256.New(), counter(0)
	err := atomicfile.WriteNew(s.FS, filepath.Join(dir, rankFile(rank)), func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, hash, &count), specs, m.label(rank), func(spec safetensors.Spec, sink *safetensors.Sink) error {
			p := byName[spec.Name]
			v, err := values(p)
			if err != nil {
				return err
			}
			if len(v) != p.To-p.From {
				return fmt.Errorf("got %d values, want %d", len(v), p.To-p.From)
			}
			return p.write(sink, v)
		})
	})
	if err != nil {
		return shard, fmt.Errorf("checkpoint: rank %d, step %d, a file of %d bytes and its header: %w", rank, m.Step, data, err)
	}
	shard.Bytes, shard.SHA256 = int64(count), hex.EncodeToString(hash.Sum(nil))
	return shard, nil
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// label is what a rank's file says about itself, so that a file of another step or run is known even without the manifest.
func (m Meta) label(rank int) map[string]string {
	return map[string]string{"run": m.Run, "step": strconv.Itoa(m.Step), "rank": strconv.Itoa(rank), "world": strconv.Itoa(m.World)}
}

func (p Part) check() error {
	if !p.sound() {
		return fmt.Errorf("%s%v is no tensor", p.DType, p.Shape)
	}
	if err := p.Box.check(len(p.Shape)); err != nil {
		return err
	}
	if p.From < 0 || p.From > p.To || p.To > p.Box.Len() {
		return fmt.Errorf("range %d to %d of a box of %d elements", p.From, p.To, p.Box.Len())
	}
	return nil
}

// boxes is the part without padding.
func (p Part) boxes() (out []Box) {
	for _, b := range p.Box.Range(p.From, p.To) {
		if b = b.Meet(Whole(p.Shape)); b.Len() > 0 {
			out = append(out, b)
		}
	}
	return out
}

// write gives the values that are no padding to the file, in order.
func (p Part) write(sink *safetensors.Sink, v []float64) error {
	at := 0
	for _, b := range p.Box.Range(p.From, p.To) {
		real := b.Meet(Whole(p.Shape))
		if err := runs(real, b, real, func(n, in, _ int) error { return sink.Float64s(v[at+in : at+in+n]) }); err != nil {
			return err
		}
		at += b.Len()
	}
	return nil
}

// Commit completes a checkpoint: manifest, mark, rename; then it removes those that Keep has no room for. It returns the checkpoint's path. If it fails
// before the rename, the temporary folder is removed and nothing has changed; an error after it says that the checkpoint is there.
func (s Store) Commit(dir string, m Meta, shards []Shard) (path string, err error) {
	path = filepath.Join(s.Root, stepName(m.Step))
	err = s.complete(dir, m, shards)
	if err == nil {
		err = s.FS.Rename(dir, path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("checkpoint: step %d: %w", m.Step, err), s.Abort(dir))
	}
	if err := s.FS.SyncDir(s.Root); err != nil {
		return path, fmt.Errorf("checkpoint: %s is there, but may not survive a power loss: %w", path, err)
	}
	if err := s.prune(); err != nil {
		return path, fmt.Errorf("checkpoint: %s is there, but older ones could not be removed: %w", path, err)
	}
	return path, nil
}

// complete writes what makes the folder a checkpoint.
func (s Store) complete(dir string, m Meta, shards []Shard) error {
	manifest, err := assemble(m, shards)
	if err != nil {
		return err
	}
	text, err := manifest.encode()
	if err != nil {
		return err
	}
	// What cannot be read back as it is, such as bytes that are no text, must not be found out at resume.
	if back, err := parseManifest(text); err != nil || !maps.Equal(back.State, m.State) || !maps.Equal(back.Identity, m.Identity) || back.Run != m.Run {
		return fmt.Errorf("%s does not read back as written (%v); hint: texts must be UTF-8", manifestName, err)
	}
	sum := sha256.Sum256(text)
	for _, f := range []struct {
		name string
		text []byte
	}{{manifestName, text}, {completeName, []byte(completeText(sum))}} {
		err := atomicfile.WriteNew(s.FS, filepath.Join(dir, f.name), func(w io.Writer) error { _, err := w.Write(f.text); return err })
		if err != nil {
			return err
		}
	}
	return s.FS.SyncDir(dir)
}

func completeText(manifest [32]byte) string {
	return fmt.Sprintf("%s, sha256 of %s: %x\n", formatName, manifestName, manifest)
}

// Abort removes the temporary folder of a checkpoint that will not be completed.
func (s Store) Abort(dir string) error {
	if !atomicfile.IsTemp(filepath.Base(dir)) {
		return fmt.Errorf("checkpoint: %s is not a temporary folder", dir)
	}
	return s.FS.RemoveAll(dir)
}

// Encode makes the text form of a shard, for ranks that are other processes.
func (s Shard) Encode() ([]byte, error) {
	out := struct {
		Tensors []Tensor  `json:"tensors"`
		Shard   shardJSON `json:"shard"`
	}{[]Tensor{}, shardJSON{s.Rank, rankFile(s.Rank), s.Bytes, s.SHA256, []heldJSON{}}}
	for _, h := range s.Held {
		out.Tensors = append(out.Tensors, h.plain())
		out.Shard.Held = append(out.Shard.Held, heldJSON{h.Name, pairs(h.Boxes)})
	}
	return json.Marshal(out)
}

// DecodeShard reads what Encode made.
func DecodeShard(text []byte) (Shard, error) {
	var m Manifest
	var s Shard
	r := strictjson.New(text)
	err := object(r, map[string]func() error{
		"tensors": func() error { return parseTensors(r, &m) },
		"shard": func() (err error) {
			byName := map[string]Tensor{}
			for _, t := range m.Tensors {
				byName[t.Name] = t
			}
			s, err = parseShard(r, byName)
			return err
		},
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return Shard{}, fmt.Errorf("checkpoint: shard of a rank: %w", err)
	}
	return s, nil
}
