package data

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

const (
	minBlock  = 16 // rows of a span at least
	blocks    = 8  // of a row group at most: reaching a block means unpacking the pages of its group before it
	maxFooter = 16 << 20
	maxRows   = 1 << 28
)

// table is a Parquet file. Its spans are rows of one row group. Only the columns that records need are read: text, prompt, completion, or the flat text columns
// of a list of messages.
type table struct {
	path   string
	size   int64
	fields *Config
	groups []int64 // rows of each group

	mu      sync.Mutex
	checked map[[2]int]bool // group and leaf whose pages checkPages has seen
}

// openParquet checks the footer and the schema. Pages are checked before they are first read.
func openParquet(path string, size int64, c *Config) (source, error) {
	t := &table{path: path, size: size, fields: c, checked: make(map[[2]int]bool)}
	err := t.with(func(f *parquet.File) error {
		columns, err := t.columns(f)
		if err != nil {
			return err
		}
		total := int64(0)
		for _, g := range f.Metadata().RowGroups {
			n := g.NumRows
			if total += n; n < 0 || n > maxRows || total > maxRows || total > 64*size {
				return fmt.Errorf("claims %d rows in %d bytes", total, size)
			}
			for _, col := range columns {
				if col.leaf >= len(g.Columns) {
					return fmt.Errorf("a row group without column %q", col.name)
				}
			}
			t.groups = append(t.groups, n)
		}
		return nil
	})
	return t, err
}

// with opens the file for as long as use needs it. The library panics on some broken files.
func (t *table) with(use func(*parquet.File) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = invalid(t.path, "parquet: %v", p)
		}
	}()
	if err := t.checkFooter(); err != nil {
		return invalid(t.path, "parquet: %w", err)
	}
	f, err := os.Open(t.path)
	if err != nil {
		return &Error{Path: t.path, Err: reason(err)}
	}
	defer f.Close()
	p, err := parquet.OpenFile(f, t.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err == nil {
		err = use(p)
	}
	if err != nil {
		return invalid(t.path, "parquet: %w", err)
	}
	return nil
}

// checkFooter walks the metadata at the end of the file.
func (t *table) checkFooter() error {
	if t.size < 12 {
		return fmt.Errorf("%d bytes are too few", t.size)
	}
	end, err := readRange(t.path, t.size-8, t.size)
	if err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if string(end[4:]) != "PAR1" {
		return fmt.Errorf("ends in %q, want PAR1", end[4:])
	}
	if n > t.size-12 || n > maxFooter {
		return fmt.Errorf("footer of %d bytes in a file of %d, want at most %d", n, t.size, maxFooter)
	}
	footer, err := readRange(t.path, t.size-8-n, t.size-8)
	if err != nil {
		return err
	}
	w := thrift{b: footer, fields: make(map[int32]int64)}
	return w.walk(0, 0)
}

func (*table) tokenizer() string { return "" }

func (t *table) divide(tail int64) (train, held []span) {
	var all []span
	rows := int64(0)
	for _, n := range t.groups {
		block := max(minBlock, (n+blocks-1)/blocks)
		for lo := int64(0); lo < n; lo += block {
			all = append(all, span{rows + lo, rows + min(lo+block, n)})
		}
		rows += n
	}
	return tailSpans(all, tail, func(s span) int64 { return (s.hi - s.lo) * t.size / rows })
}

func (t *table) read(s span) (docs []document, dropped []string, err error) {
	err = t.with(func(f *parquet.File) error {
		columns, err := t.columns(f)
		if err != nil {
			return err
		}
		records := make([]map[string]json.RawMessage, s.hi-s.lo)
		for i := range records {
			records[i] = make(map[string]json.RawMessage)
		}
		first := int64(0)
		for i, g := range f.RowGroups() {
			lo, hi := max(s.lo, first), min(s.hi, first+g.NumRows())
			if lo < hi {
				if err := t.check(f, i, columns); err != nil {
					return err
				}
				if err := readGroup(g, columns, lo-first, records[lo-s.lo:hi-s.lo]); err != nil {
					return fmt.Errorf("rows %d to %d: %w", lo, hi, err)
				}
			}
			first += g.NumRows()
		}
		for i, r := range records {
			d, why, err := t.fields.record(r)
			if err != nil {
				return fmt.Errorf("row %d: %w", s.lo+int64(i), err)
			}
			docs, dropped = append(docs, d...), append(dropped, why...)
		}
		return nil
	})
	return docs, dropped, err
}

// column is a leaf of the schema that records need.
type column struct {
	name     string // "text", or of a list "role", …
	leaf     int
	list     bool
	rep, def int // highest repetition and definition level
}

// columns finds the leaves that records need.
func (t *table) columns(f *parquet.File) (found []column, err error) {
	for i, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		top := path[0]
		wanted := top == t.fields.Field || t.fields.Field == "" && (top == colText || top == colMessages) || top == colPrompt || top == colCompletion
		if !wanted {
			continue
		}
		if leaf.Node.Type().Kind() != parquet.ByteArray {
			return nil, fmt.Errorf("column %q is %v, want text", strings.Join(path, "."), leaf.Node.Type())
		}
		switch {
		case len(path) == 1 && leaf.MaxRepetitionLevel == 0:
			found = append(found, column{name: top, leaf: i, def: leaf.MaxDefinitionLevel})
		case top == colMessages && leaf.MaxRepetitionLevel == 1 && len(path) <= 4: // messages.list.element.role
			found = append(found, column{name: path[len(path)-1], leaf: i, list: true, rep: 1, def: leaf.MaxDefinitionLevel})
		default:
			return nil, fmt.Errorf("column %q is nested deeper than text or a list of messages; hint: use JSONL", strings.Join(path, "."))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("columns %q, of which none is text, messages or prompt; hint: name the field", f.Schema().Columns())
	}
	return found, nil
}

// readGroup fills records with the rows of a group from row lo on.
func readGroup(g parquet.RowGroup, columns []column, lo int64, records []map[string]json.RawMessage) error {
	messages, lists := make([][]map[string]string, len(records)), false
	for _, c := range columns {
		values, err := columnValues(g.ColumnChunks()[c.leaf], lo, len(records))
		if err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		row, item := -1, 0
		lists = lists || c.list
		for _, v := range values {
			if item++; v.RepetitionLevel() == 0 {
				row, item = row+1, 0
			}
			if v.IsNull() {
				if !c.list {
					records[row][c.name] = json.RawMessage("null")
				}
				continue
			}
			text := string(v.ByteArray())
			if !utf8.ValidString(text) {
				return fmt.Errorf("column %q: not UTF-8", c.name)
			}
			if c.list {
				for len(messages[row]) <= item {
					messages[row] = append(messages[row], make(map[string]string))
				}
				messages[row][item][c.name] = text
				continue
			}
			if records[row][c.name], err = json.Marshal(text); err != nil {
				return err
			}
		}
	}
	for i, m := range messages {
		if !lists {
			break
		}
		if m == nil {
			m = []map[string]string{}
		}
		var err error
		if records[i][colMessages], err = json.Marshal(m); err != nil {
			return err
		}
	}
	return nil
}

// columnValues returns the values of n rows from row lo on; the values of one row follow each other.
func columnValues(c parquet.ColumnChunk, lo int64, n int) (all []parquet.Value, err error) {
	pages := c.Pages()
	defer pages.Close()
	if err := pages.SeekToRow(lo); err != nil {
		return nil, err
	}
	rows := 0
	buf := make([]parquet.Value, 256)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF && rows == n {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%d of %d rows: %w", rows, n, err)
		}
		for values := page.Values(); err == nil; {
			var k int
			k, err = values.ReadValues(buf)
			for _, v := range buf[:k] {
				if v.RepetitionLevel() == 0 {
					if rows++; rows > n {
						return all, nil
					}
				}
				if rows == 0 {
					return nil, errors.New("the first value continues a row")
				}
				all = append(all, v.Clone())
			}
		}
		if err != io.EOF {
			return nil, err
		}
	}
}
