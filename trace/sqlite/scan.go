package sqlite

import (
	"encoding/binary"
	"math"
)

// Kind of a value.
type Kind uint8

const (
	Null Kind = iota
	Integer
	Real
	Text
	Blob
)

// Value is what stands in a row's column. Bytes are valid only until the next row.
type Value struct {
	Kind  Kind
	Int   int64
	Real  float64
	Bytes []byte
}

// maxRow is the longest row that is read; SQLite's own limit is a billion bytes.
const maxRow = 64 << 20

// Scan calls row with the named columns of each row of t, in order of the row id. Columns that the table or the row
// does not have are Null. What cannot be read is counted in Lost. The error is row's.
func (f *File) Scan(t *Table, columns []string, row func([]Value) error) error {
	s := scan{f: f, t: t, row: row, out: make([]Value, len(columns)), seen: make([]uint64, f.Pages/64+1), overflow: int64(f.Pages)}
	for i, c := range t.Columns {
		for j, name := range columns {
			if c == name {
				for len(s.slots) <= i {
					s.slots = append(s.slots, -1)
				}
				s.slots[i] = j
			}
		}
	}
	if t.rowid >= 0 && t.rowid < len(s.slots) {
		s.rowid = s.slots[t.rowid]
	} else {
		s.rowid = -1
	}
	return s.tree(t.root, 0)
}

type scan struct {
	f     *File
	t     *Table
	row   func([]Value) error
	slots []int // of a column, the place in out, or -1; no longer than needed
	rowid int   // where the row id goes, or -1
	out   []Value
	long  []byte // a row that overflows its page

	// Against circles: a page belongs to a table once, and so does an overflow page to a row.
	seen     []uint64 // a bit a page
	overflow int64    // overflow pages that may still be read
}

// visit marks a page; false if it was marked before.
func (s *scan) visit(number uint32) bool {
	if number > s.f.Pages || s.seen[number/64]>>(number%64)&1 == 1 {
		return false
	}
	s.seen[number/64] |= 1 << (number % 64)
	return true
}

// tree visits a page of the table's tree and what hangs on it. Section 1.6.
func (s *scan) tree(number uint32, depth int) error {
	p, ok := s.f.page(number)
	if !ok || depth > 40 || !s.visit(number) {
		s.f.Lost++
		return nil
	}
	head := 0
	if number == 1 {
		head = 100 // behind the file header
	}
	cells := int(binary.BigEndian.Uint16(p[head+3:]))
	switch p[head] {
	case 13: // leaf of a table
		return s.leaf(p, number, head+8, cells)
	case 5: // interior page of a table
	default:
		s.f.Lost++
		return nil
	}
	if head+12+2*cells > len(p) {
		s.f.Lost++
		return nil
	}
	children := make([]uint32, 0, cells+1)
	for i := range cells {
		at := int(binary.BigEndian.Uint16(p[head+12+2*i:]))
		if at+4 > len(p) {
			s.f.Lost++
			continue
		}
		children = append(children, binary.BigEndian.Uint32(p[at:]))
	}
	children = append(children, binary.BigEndian.Uint32(p[head+8:]))
	for _, child := range children {
		if err := s.tree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) leaf(p []byte, number uint32, at, cells int) error {
	if at+2*cells > len(p) {
		s.f.Lost++
		return nil
	}
	for i := range cells {
		cell := int(binary.BigEndian.Uint16(p[at+2*i:]))
		payload, id, ok := s.payload(&p, number, cell)
		if ok {
			ok = s.record(payload, id)
		}
		if !ok {
			s.f.Lost++
			continue
		}
		if err := s.row(s.out); err != nil {
			return err
		}
	}
	return nil
}

// payload finds the record of a cell. One that overflows is put together in s.long, and page p is read again.
func (s *scan) payload(p *[]byte, number uint32, cell int) (record []byte, id int64, ok bool) {
	b := *p
	if cell >= len(b) {
		return nil, 0, false
	}
	size, n := varint(b[cell:])
	rowid, m := varint(b[cell+n:])
	if n == 0 || m == 0 || size > maxRow {
		return nil, 0, false
	}
	at := cell + n + m
	local := int(size)
	if most := s.f.usable - 35; local > most { // section 1.6, "cell payload overflow pages"
		least := (s.f.usable-12)*32/255 - 23
		if local = least + (int(size)-least)%(s.f.usable-4); local > most {
			local = least
		}
	}
	if at+local > len(b) {
		return nil, 0, false
	}
	if local == int(size) {
		return b[at : at+local], int64(rowid), true
	}
	if at+local+4 > len(b) {
		return nil, 0, false
	}
	s.long = append(s.long[:0], b[at:at+local]...)
	next := binary.BigEndian.Uint32(b[at+local:])
	for len(s.long) < int(size) {
		o, ok := s.f.page(next)
		if s.overflow--; !ok || s.overflow < 0 {
			break
		}
		s.long = append(s.long, o[4:min(s.f.usable, 4+int(size)-len(s.long))]...)
		next = binary.BigEndian.Uint32(o)
	}
	*p, ok = s.f.page(number)
	return s.long, int64(rowid), ok && len(s.long) == int(size)
}

// record takes the wanted columns out of a record. Section 2.1.
func (s *scan) record(b []byte, id int64) bool {
	clear(s.out)
	size, n := varint(b)
	if n == 0 || size > uint64(len(b)) {
		return false
	}
	head, body := b[n:max(int(size), n)], b[size:]
	for i := 0; len(head) > 0 && i < len(s.slots); i++ {
		serial, n := varint(head)
		if n == 0 {
			return false
		}
		head = head[n:]
		length := serialLength(serial)
		if length > uint64(len(body)) {
			return false
		}
		if slot := s.slots[i]; slot >= 0 {
			s.out[slot] = value(serial, body[:length])
		}
		body = body[length:]
	}
	if s.rowid >= 0 {
		s.out[s.rowid] = Value{Kind: Integer, Int: id}
	}
	return true
}

func serialLength(serial uint64) uint64 {
	switch {
	case serial <= 4:
		return serial
	case serial == 5:
		return 6
	case serial <= 7:
		return 8
	case serial <= 11:
		return 0
	}
	return (serial - 12) / 2
}

func value(serial uint64, b []byte) Value {
	switch {
	case serial == 0 || serial == 10 || serial == 11:
		return Value{}
	case serial == 7:
		return Value{Kind: Real, Real: math.Float64frombits(binary.BigEndian.Uint64(b))}
	case serial <= 6:
		n := int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return Value{Kind: Integer, Int: n}
	case serial <= 9:
		return Value{Kind: Integer, Int: int64(serial - 8)}
	case serial%2 == 0:
		return Value{Kind: Blob, Bytes: b}
	}
	return Value{Kind: Text, Bytes: b}
}

// varint reads a number of one to nine bytes; n is 0 if b ends in it.
func varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	for i, c := range b {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
