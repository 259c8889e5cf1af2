package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the oracle, and the maker of files
)

func open(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// made is a database by SQLite with what its format has to offer: all sizes of integers, long rows, columns added
// later, an empty table, odd names, comments, constraints.
func made(t testing.TB) []byte {
	name := filepath.Join(t.TempDir(), "made.sqlite")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(q string, args ...any) {
		if _, err := db.Exec(q, args...); err != nil {
			t.Fatal(q, err)
		}
	}
	db.SetMaxOpenConns(1)
	exec(`PRAGMA synchronous = OFF`)
	exec(`BEGIN`)
	exec(`CREATE TABLE keyed (x TEXT, id INTEGER NOT NULL, CONSTRAINT pk PRIMARY KEY ("id"))`)
	exec(`INSERT INTO keyed VALUES ('a', 5), ('b', -9)`)
	exec(`CREATE TABLE counted (id INTEGER   NOT NULL   PRIMARY KEY AUTOINCREMENT, y INT)`)
	exec(`INSERT INTO counted (y) VALUES (1), (2)`)
	exec(`CREATE TABLE strings (id INTEGER PRIMARY KEY, -- the id, (of course)
		value TEXT NOT NULL /* ) */, CHECK (id > 0), UNIQUE(value))`)
	exec(`CREATE TABLE [odd names] ("a, b" INT, 'c)' REAL, ` + "`d`" + ` BLOB DEFAULT (1+(2)), e)`)
	exec(`CREATE TABLE empty (x)`)
	for i := range 3000 {
		exec(`INSERT INTO strings VALUES (?, ?)`, i*3+1, strings.Repeat(fmt.Sprint(i, "µ"), 1+i%7))
	}
	exec(`INSERT INTO strings VALUES (100000, ?)`, strings.Repeat("long ", 20000))
	exec(`INSERT INTO strings VALUES (100001, ?)`, strings.Repeat("x", 4061)) // one more than fits a page
	for shift := range 64 {
		n := int64(1) << shift
		exec(`INSERT INTO "odd names" VALUES (?, ?, ?, NULL)`, n, float64(n)/3, []byte{1, byte(shift)})
		exec(`INSERT INTO "odd names" VALUES (?, ?, ?, 7)`, -n, -0.5, nil)
	}
	exec(`ALTER TABLE "odd names" ADD COLUMN late TEXT`)
	exec(`INSERT INTO "odd names" VALUES (0, 1, 'text', 1, 'here')`)
	exec(`COMMIT`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(v Value) string {
	switch v.Kind {
	case Integer:
		return fmt.Sprint(v.Int)
	case Real:
		return fmt.Sprint(v.Real)
	case Text, Blob:
		return fmt.Sprintf("%q", v.Bytes)
	}
	return "NULL"
}

// rows are all rows of all tables, by the reader here.
func rows(t testing.TB, f *File) map[string][]string {
	all := map[string][]string{}
	for _, table := range f.Tables {
		lines := []string{strings.Join(table.Columns, "|")}
		err := f.Scan(table, table.Columns, func(v []Value) error {
			var parts []string
			for _, x := range v {
				parts = append(parts, text(x))
			}
			lines = append(lines, strings.Join(parts, "|"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all[table.Name] = lines
	}
	return all
}

// wanted are the same by SQLite.
func wanted(t testing.TB, name string) map[string][]string {
	db, err := sql.Open("sqlite", "file:"+name+"?mode=ro&immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names []string
	list, err := db.Query("SELECT name FROM sqlite_schema WHERE type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	for list.Next() {
		var n string
		if err := list.Scan(&n); err != nil {
			t.Fatal(err)
		}
		names = append(names, n)
	}
	all := map[string][]string{}
	for _, n := range names {
		r, err := db.Query(`SELECT * FROM "` + n + `"`)
		if err != nil {
			t.Fatal(err)
		}
		cols, _ := r.Columns()
		lines := []string{strings.Join(cols, "|")}
		for r.Next() {
			vals := make([]any, len(cols))
			for i := range vals {
				vals[i] = new(any)
			}
			if err := r.Scan(vals...); err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, v := range vals {
				switch x := (*v.(*any)).(type) {
				case nil:
					parts = append(parts, "NULL")
				case string:
					parts = append(parts, fmt.Sprintf("%q", x))
				case []byte:
					parts = append(parts, fmt.Sprintf("%q", x))
				default:
					parts = append(parts, fmt.Sprint(x))
				}
			}
			lines = append(lines, strings.Join(parts, "|"))
		}
		all[n] = lines
	}
	return all
}

func TestEveryRowAgreesWithSQLite(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.sqlite")
	if err := os.WriteFile(own, made(t), 0o644); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("../../../shared/traces/*/*.sqlite")
	if len(files) == 0 {
		t.Log("only our own file: no shared traces here")
	}
	for _, name := range append(files, own) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, b)
		got, want := rows(t, f), wanted(t, name)
		if f.Lost != 0 || f.Missing() != 0 || len(got) != len(want) {
			t.Errorf("%s: lost %d, missing %d, %d tables, want %d", name, f.Lost, f.Missing(), len(got), len(want))
		}
		for table, lines := range want {
			if len(got[table]) != len(lines) {
				t.Errorf("%s %s: %d rows, want %d", name, table, len(got[table]), len(lines))
				continue
			}
			for i := range lines {
				if got[table][i] != lines[i] {
					t.Errorf("%s %s row %d:\n got %.200s\nwant %.200s", name, table, i, got[table][i], lines[i])
					break
				}
			}
		}
	}
}

// A cut file still gives the rows of the pages that are there, and says that pages are missing.
func TestACutFileGivesTheRowsThatAreThere(t *testing.T) {
	b := made(t)
	whole := len(rows(t, open(t, b))["strings"])
	half := open(t, b[:len(b)/2+17])
	got := len(rows(t, half)["strings"])
	if got < whole/5 || got >= whole || half.Missing() == 0 || half.Lost == 0 {
		t.Errorf("%d of %d rows, %d pages missing, lost %d", got, whole, half.Missing(), half.Lost)
	}
}

// A page that points at itself, or at its parent, ends the scan instead of going round.
func TestCirclesEnd(t *testing.T) {
	b := made(t)
	f := open(t, b)
	root := f.Table("strings").root
	p := b[(int(root)-1)*f.pageSize:]
	if p[0] != 5 {
		t.Fatalf("page %d has type %d, want an interior page", root, p[0])
	}
	binary.BigEndian.PutUint32(p[8:], root)
	g := open(t, b)
	rows(t, g)
	if g.Lost == 0 {
		t.Error("a page that is its own child was not noticed")
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	b := made(t)
	page := bytes.Clone(b)
	page[16], page[17] = 0, 3
	utf16 := bytes.Clone(b)
	utf16[59] = 2
	for name, file := range map[string][]byte{"empty": {}, "short": b[:50], "text": bytes.Repeat([]byte("x"), 200), "page size 3": page, "UTF-16": utf16} {
		if _, err := Open(bytes.NewReader(file), int64(len(file))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkScanKernels(b *testing.B) {
	file, err := os.ReadFile("../../../shared/traces/nsys-ai/mfu_2gpu_before.sqlite")
	if err != nil {
		b.Skip("no shared traces here")
	}
	f := open(b, file)
	n := 0
	for b.Loop() {
		for _, name := range []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"} {
			f.Scan(f.Table(name), []string{"start", "end", "correlationId"}, func(v []Value) error { n++; return nil })
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
}
