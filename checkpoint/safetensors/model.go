package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heddle/internal/atomicfile"
	"heddle/internal/strictjson"
)

// The names that Hugging Face libraries look for in a model's folder.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
	maxIndex   = 100_000_000 // bytes
)

// Model is the weights of a folder: one file, or the shards of an index.
type Model struct {
	dir    string
	files  map[string]*File  // by name within dir
	inFile map[string]string // tensor to file
}

// OpenModel opens model.safetensors or, where there is an index, the shards it names. A tensor that index and shards do not agree on is an error,
// and so is a folder with both: nobody can tell which one is meant.
func OpenModel(dir string) (*Model, error) {
	index := filepath.Join(dir, indexName)
	single := filepath.Join(dir, singleName)
	_, errIndex := os.Stat(index)
	_, errSingle := os.Stat(single)
	switch {
	case errIndex == nil && errSingle == nil:
		return nil, fmt.Errorf("safetensors: %s has both %s and %s; hint: remove the stale one", dir, singleName, indexName)
	case errIndex == nil:
		return openIndex(dir, index)
	case errSingle != nil:
		return nil, fmt.Errorf("safetensors: %s has neither %s nor %s: %w", dir, singleName, indexName, errSingle)
	}
	f, err := Open(single)
	if err != nil {
		return nil, err
	}
	m := &Model{dir: dir, files: map[string]*File{singleName: f}, inFile: map[string]string{}}
	for _, t := range f.header.tensors {
		m.inFile[t.Name] = singleName
	}
	return m, nil
}

func openIndex(dir, index string) (*Model, error) {
	weightMap, err := readIndex(index)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", index, err)
	}
	m := &Model{dir: dir, files: map[string]*File{}, inFile: weightMap}
	for _, name := range slices.Sorted(maps.Values(weightMap)) {
		if m.files[name] != nil {
			continue
		}
		f, err := Open(filepath.Join(dir, name))
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.files[name] = f
	}
	if err := m.agree(); err != nil {
		return nil, errors.Join(fmt.Errorf("safetensors: %s: %w", index, err), m.Close())
	}
	return m, nil
}

// agree checks that every tensor lies in the shard the index names, and in no other.
func (m *Model) agree() error {
	for _, file := range slices.Sorted(maps.Keys(m.files)) {
		for _, t := range m.files[file].header.tensors {
			if want, ok := m.inFile[t.Name]; !ok {
				return fmt.Errorf("%s holds tensor %.100q, which the index does not list", file, t.Name)
			} else if want != file {
				return fmt.Errorf("tensor %.100q is in %s, the index says %s; hint: a shard may have been swapped", t.Name, file, want)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.inFile)) {
		if _, ok := m.files[m.inFile[name]].byName[name]; !ok {
			return fmt.Errorf("tensor %.100q is not in %s", name, m.inFile[name])
		}
	}
	return nil
}

// readIndex reads {"metadata": {…}, "weight_map": {tensor: file}}.
func readIndex(path string) (map[string]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxIndex {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", st.Size(), maxIndex)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseIndex(text)
}

func parseIndex(text []byte) (map[string]string, error) {
	var weightMap map[string]string
	r := strictjson.New(text)
	err := r.Object(func(key string) error {
		switch key {
		case "metadata": // total_size and the like: advice, and wrong in many published files
			return r.Skip()
		case "weight_map":
			weightMap = map[string]string{}
			return r.Object(func(tensor string) error {
				at := r.Offset()
				file, err := r.String()
				if err == nil && !shardName(file) {
					err = strictjson.Errorf(at, "tensor %.100q: %.100q is not the name of a .safetensors file in this folder", tensor, file)
				}
				weightMap[tensor] = file
				return err
			})
		}
		return strictjson.Errorf(r.Offset(), "unknown field %.100q", key)
	})
	if err == nil {
		err = r.End()
	}
	if err == nil && len(weightMap) == 0 {
		err = strictjson.Errorf(0, "no weight_map, or an empty one")
	}
	return weightMap, err
}

// shardName tells whether s names a file in the index's own folder, on any system.
func shardName(s string) bool {
	return strings.HasSuffix(s, ".safetensors") && !strings.ContainsAny(s, "/\\:\x00") && !strings.HasPrefix(s, ".")
}

// Close closes all files.
func (m *Model) Close() error {
	var all error
	for _, f := range m.files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// Names lists all tensors, sorted.
func (m *Model) Names() []string { return slices.Sorted(maps.Keys(m.inFile)) }

// Tensor finds a tensor by name.
func (m *Model) Tensor(name string) (Tensor, error) {
	file, ok := m.inFile[name]
	if !ok {
		return Tensor{}, fmt.Errorf("safetensors: %s has no tensor %.100q", m.dir, name)
	}
	return m.files[file].Tensor(name)
}

// WriteModel writes a folder's weights: one model.safetensors, or shards of at most maxShard bytes of data (a larger tensor has a shard to itself) and
// their index. The folder must exist and hold no weights yet. Nothing is called complete before it is: the index comes last.
func WriteModel(dir string, specs []Spec, maxShard int64, fill Fill) error {
	return writeModel(atomicfile.OS{}, dir, specs, maxShard, fill)
}

func writeModel(fsys atomicfile.FS, dir string, specs []Spec, maxShard int64, fill Fill) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for _, n := range names {
		if shardName(n) || n == indexName {
			return fmt.Errorf("safetensors: %s already holds %s; hint: write to an empty folder", dir, n)
		}
	}
	shards, err := split(specs, maxShard)
	if err != nil {
		return err
	}
	if len(shards) == 1 {
		return writeShard(fsys, filepath.Join(dir, singleName), shards[0], fill)
	}
	for i, shard := range shards {
		if err := writeShard(fsys, filepath.Join(dir, shardFile(i, len(shards))), shard, fill); err != nil {
			return err
		}
	}
	text, err := encodeIndex(shards)
	if err != nil {
		return err
	}
	return atomicfile.Write(fsys, filepath.Join(dir, indexName), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func writeShard(fsys atomicfile.FS, path string, specs []Spec, fill Fill) error {
	return atomicfile.Write(fsys, path, func(w io.Writer) error { return Write(w, specs, HF(), fill) })
}

func shardFile(i, n int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }

// split cuts specs, kept in order, into runs of at most limit bytes.
func split(specs []Spec, limit int64) ([][]Spec, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("safetensors: shards of %d bytes, want more than 0", limit)
	}
	shards := [][]Spec{nil}
	room := limit
	for _, s := range specs {
		n, ok := bytesOf(s.DType, s.Shape)
		if !ok {
			return nil, fmt.Errorf("safetensors: tensor %.100q: shape %v is too large", s.Name, s.Shape)
		}
		if last := len(shards) - 1; n > room && len(shards[last]) > 0 {
			shards = append(shards, nil)
			room = limit
		}
		last := len(shards) - 1
		shards[last] = append(shards[last], s)
		room -= n
	}
	return shards, nil
}

// encodeIndex makes the index as transformers writes it: sorted, indented by two.
func encodeIndex(shards [][]Spec) ([]byte, error) {
	inFile, total := map[string]string{}, int64(0)
	for i, shard := range shards {
		for _, s := range shard {
			if _, twice := inFile[s.Name]; twice {
				return nil, fmt.Errorf("safetensors: tensor name %.100q occurs twice", s.Name)
			}
			n, _ := bytesOf(s.DType, s.Shape)
			inFile[s.Name], total = shardFile(i, len(shards)), total+n
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"metadata\": {\n    \"total_size\": %d\n  },\n  \"weight_map\": {", total)
	sep := "\n"
	for _, name := range slices.Sorted(maps.Keys(inFile)) {
		quoted, err := marshal(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s    %s: \"%s\"", sep, quoted, inFile[name])
		sep = ",\n"
	}
	return []byte(b.String() + "\n  }\n}\n"), nil
}
