// Package sqlite reads the tables of an SQLite database file from first to last row. That is all it does: no SQL, no
// index, no writing, no WAL. In return it needs a few hundred KB for a file of any size, reads only the columns that
// are asked for, and gives what can be read of a file that is cut or damaged, which SQLite itself refuses.
//
// The file format is described in https://www.sqlite.org/fileformat2.html; section numbers below are that page's.
// Start with Open, then File.Scan.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// File is an open database.
type File struct {
	Tables []*Table
	Pages  uint32 // as many as the file holds in full
	Lost   int64  // pages that a scan wanted and could not read, and rows that made no sense

	r        io.ReaderAt
	pageSize int
	usable   int // bytes of a page that are not reserved
	cache    cache
	want     uint32 // pages that the header counts
}

// Table is a table and its columns, in order.
type Table struct {
	Name    string
	Columns []string
	root    uint32
	rowid   int // the column that is another name of the row id, -1 if there is none
}

// Open reads the header and the schema. It fails only if there is no schema to be had.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var h [100]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return nil, fmt.Errorf("sqlite: header of 100 bytes: %w", err)
	}
	if string(h[:16]) != "SQLite format 3\x00" {
		return nil, errors.New("sqlite: bytes 0..16 are not \"SQLite format 3\"")
	}
	f := &File{r: r, pageSize: int(binary.BigEndian.Uint16(h[16:]))}
	if f.pageSize == 1 { // section 1.3.2
		f.pageSize = 65536
	}
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 {
		return nil, fmt.Errorf("sqlite: page size %d, want a power of two from 512 to 65536", f.pageSize)
	}
	f.usable = f.pageSize - int(h[20])
	if f.usable < 480 {
		return nil, fmt.Errorf("sqlite: %d usable bytes a page, want at least 480", f.usable)
	}
	if enc := binary.BigEndian.Uint32(h[56:]); enc > 1 {
		return nil, fmt.Errorf("sqlite: text encoding %d, want 1 (UTF-8)", enc)
	}
	f.Pages = uint32(min(size/int64(f.pageSize), 1<<32-2))
	f.want = binary.BigEndian.Uint32(h[28:])
	f.cache = cache{r: r, pageSize: f.pageSize}
	schema := &Table{Name: "sqlite_schema", Columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, root: 1, rowid: -1}
	err := f.Scan(schema, []string{"type", "name", "rootpage", "sql"}, func(v []Value) error {
		if string(v[0].Bytes) == "table" && v[2].Kind == Integer && v[2].Int > 0 && v[2].Int < 1<<32 {
			t := &Table{Name: string(v[1].Bytes), root: uint32(v[2].Int), rowid: -1}
			t.parse(string(v[3].Bytes))
			f.Tables = append(f.Tables, t)
		}
		return nil
	})
	if err == nil && len(f.Tables) == 0 && f.Lost > 0 {
		err = errors.New("sqlite: the schema cannot be read")
	}
	return f, err
}

// Missing is the number of pages that the header counts but the file does not hold: it was cut.
func (f *File) Missing() uint32 {
	if f.want > f.Pages {
		return f.want - f.Pages
	}
	return 0
}

// Table is the table of that name, nil if there is none.
func (f *File) Table(name string) *Table {
	for _, t := range f.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Has tells whether the table has a column.
func (t *Table) Has(column string) bool {
	for _, c := range t.Columns {
		if c == column {
			return true
		}
	}
	return false
}

// cache holds blocks of pages, because rows in order mostly lie in pages in order.
type cache struct {
	r        io.ReaderAt
	pageSize int
	blocks   [cacheBlocks]block
}

type block struct {
	at   int64 // offset in the file
	data []byte
}

const (
	cacheBlocks = 16
	blockSize   = 128 << 10
)

// page returns a page, valid until the next call.
func (f *File) page(number uint32) ([]byte, bool) {
	if number == 0 || number > f.Pages {
		return nil, false
	}
	c := &f.cache
	off := int64(number-1) * int64(c.pageSize)
	at := off / blockSize * blockSize
	b := &c.blocks[off/blockSize%cacheBlocks]
	if b.data == nil || b.at != at {
		if cap(b.data) == 0 {
			b.data = make([]byte, blockSize)
		}
		n, err := c.r.ReadAt(b.data[:blockSize], at)
		b.at, b.data = at, b.data[:n]
		if err != nil && err != io.EOF {
			b.data = b.data[:0]
		}
	}
	if int(off-at)+c.pageSize > len(b.data) {
		return nil, false
	}
	return b.data[off-at:][:c.pageSize], true
}
