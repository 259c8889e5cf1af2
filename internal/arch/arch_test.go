package arch

import (
	"flag"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into ARCHITECTURE.md")

const root = "../.."

// imports lists, a package, what its files (tests left out) import.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		out[pkg] = append([]string{}, out[pkg]...)
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			out[pkg] = append(out[pkg], p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reach is what a room may import: the rooms it names and what those may.
func reach(rooms []Room, path string, seen map[string]bool) map[string]bool {
	for _, r := range rooms {
		if r.Path != path {
			continue
		}
		for _, i := range strings.Fields(r.Imports) {
			if seen[i] {
				continue
			}
			seen[i] = true
			if room, ok := Find(rooms, i); ok {
				reach(rooms, room.Path, seen)
			}
		}
	}
	return seen
}

func TestPackagesImportWhatTheirRoomAllows(t *testing.T) {
	rooms := Rooms()
	for pkg, list := range imports(t) {
		room, ok := Find(rooms, pkg)
		if !ok {
			t.Errorf("package %s has no room in the table", pkg)
			continue
		}
		may := reach(rooms, room.Path, map[string]bool{})
		for _, i := range list {
			first, _, _ := strings.Cut(i, "/")
			switch {
			case strings.HasPrefix(i, "heddle/"):
				if x := strings.TrimPrefix(i, "heddle/"); !may[x] && !may["*"] {
					t.Errorf("%s imports %s; its room allows %s", pkg, x, room.Imports)
				}
			case strings.Contains(first, "."):
				ok := false
				for _, m := range strings.Fields(room.Modules) {
					ok = ok || i == m || strings.HasPrefix(i, m+"/")
				}
				if !ok {
					t.Errorf("%s imports %s; its room allows %q", pkg, i, room.Modules)
				}
			}
		}
	}
}

func TestNamesSayWhatTheyAre(t *testing.T) {
	bad := regexp.MustCompile(`^(util|utils|common|helper|helpers|core|base|misc|shared)$`)
	for pkg := range imports(t) {
		if bad.MatchString(filepath.Base(pkg)) {
			t.Errorf("package %s is named for nothing", pkg)
		}
	}
}

func TestArchitectureHasTheTable(t *testing.T) {
	path := filepath.Join(root, "ARCHITECTURE.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rooms -->\n", "<!-- /rooms -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md has no %s … %s", begin, end)
	}
	want := head + begin + Table(Rooms()) + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("the table in ARCHITECTURE.md is not the code's; hint: go test ./internal/arch -update")
	}
}

// Links in the documents that stand at the top must name files that exist.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	docs, _ := filepath.Glob(filepath.Join(root, "*.md"))
	more, _ := filepath.Glob(filepath.Join(root, "docs/*.md"))
	for _, doc := range append(docs, more...) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(doc), m[1], err)
			}
		}
	}
}
