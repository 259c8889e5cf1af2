package rl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"heddle/internal/atomicfile"
)

// Folder is where an experiment leaves what it found: config.yaml, env.json, metrics.jsonl as it goes, result.json at the end.
type Folder struct {
	Path    string
	metrics *os.File
	start   time.Time
}

// Create makes the folder, which must not exist yet.
func Create(path, config string, args []string) (*Folder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("rl: the run's folder: %w; hint: another --out", err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("rl: the run's folder: %w; hint: another --out", err)
	}
	f := &Folder{Path: path, start: time.Now()}
	host, _ := os.Hostname()
	env := map[string]any{"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(), "host": host, "args": args, "start": f.start.UTC().Format(time.RFC3339)}
	if err := f.Write("config.yaml", func(w io.Writer) error { _, err := io.WriteString(w, config); return err }); err != nil {
		return nil, err
	}
	if err := f.JSON("env.json", env); err != nil {
		return nil, err
	}
	var err error
	f.metrics, err = os.OpenFile(filepath.Join(path, "metrics.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return f, err
}

// Write writes a file of the folder, whole or not at all.
func (f *Folder) Write(name string, fill func(io.Writer) error) error {
	if err := atomicfile.Write(atomicfile.OS{}, filepath.Join(f.Path, name), fill); err != nil {
		return fmt.Errorf("rl: %w", err)
	}
	return nil
}

// JSON writes a value.
func (f *Folder) JSON(name string, v any) error {
	return f.Write(name, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// Add appends an event to metrics.jsonl.
func (f *Folder) Add(e Event) error {
	line, err := json.Marshal(struct {
		Wall float64 `json:"wall_s"`
		Event
	}{time.Since(f.start).Seconds(), e})
	if err != nil {
		return fmt.Errorf("rl: metrics: %w", err)
	}
	_, err = f.metrics.Write(append(line, '\n'))
	return err
}

// Close ends a run that has no result.
func (f *Folder) Close() error { return f.metrics.Close() }

// Finish writes the result.
func (f *Folder) Finish(v any) error {
	return errors.Join(f.JSON("result.json", v), f.Close())
}
