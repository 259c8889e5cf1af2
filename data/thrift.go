package data

import (
	"encoding/binary"
	"errors"
)

// thrift walks a structure in Thrift's compact encoding, in which Parquet writes its headers, without building it. The Parquet library allocates what a list
// claims to hold; walking first makes sure that it is there.
type thrift struct {
	b      []byte
	at     int
	items  int             // of all lists so far
	fields map[int32]int64 // integers and truth values (1, 0) of the structure and, at parent*256+field, of the structures in it
}

const (
	maxItems = 1 << 20
	maxNests = 24
)

var errThrift = errors.New("header is cut off or claims more than there is")

func (t *thrift) varint() (uint64, error) {
	v, n := binary.Uvarint(t.b[t.at:])
	if n <= 0 {
		return 0, errThrift
	}
	t.at += n
	return v, nil
}

func (t *thrift) byte() (byte, error) {
	if t.at >= len(t.b) {
		return 0, errThrift
	}
	t.at++
	return t.b[t.at-1], nil
}

func (t *thrift) skip(n uint64) error {
	if n > uint64(len(t.b)-t.at) {
		return errThrift
	}
	t.at += int(n)
	return nil
}

// walk reads a structure; its integer fields are recorded below `parent`, if it is not deeper than one level.
func (t *thrift) walk(parent int32, depth int) error {
	if depth > maxNests {
		return errThrift
	}
	for id := int32(0); ; {
		h, err := t.byte()
		if err != nil || h == 0 {
			return err
		}
		if delta := h >> 4; delta != 0 {
			id += int32(delta)
		} else {
			v, err := t.varint()
			if err != nil {
				return err
			}
			id = int32(v>>1) ^ -int32(v&1)
		}
		kind, key := h&15, parent*256+id
		switch {
		case kind == 1 || kind == 2: // true, false
			if depth <= 1 && id > 0 && id < 256 {
				t.fields[key] = int64(2 - kind)
			}
		case kind >= 4 && kind <= 6 && depth <= 1 && id > 0 && id < 256:
			v, err := t.varint()
			if err != nil {
				return err
			}
			t.fields[key] = int64(v>>1) ^ -int64(v&1)
		default:
			if err := t.value(kind, key, depth); err != nil {
				return err
			}
		}
	}
}

// value passes over one value.
func (t *thrift) value(kind byte, key int32, depth int) error {
	switch kind {
	case 1, 2, 3: // in lists booleans take a byte
		return t.skip(1)
	case 4, 5, 6:
		_, err := t.varint()
		return err
	case 7:
		return t.skip(8)
	case 8:
		n, err := t.varint()
		if err != nil {
			return err
		}
		return t.skip(n)
	case 9, 10:
		return t.list(depth)
	case 12:
		if depth > 0 {
			key = 0
		}
		return t.walk(key, depth+1)
	}
	return errThrift // maps and what else there is do not occur in Parquet
}

func (t *thrift) list(depth int) error {
	h, err := t.byte()
	if err != nil {
		return err
	}
	n := uint64(h >> 4)
	if n == 15 {
		if n, err = t.varint(); err != nil {
			return err
		}
	}
	if n > uint64(len(t.b)-t.at) || t.items+int(n) > maxItems || depth > maxNests { // an item takes a byte at least
		return errThrift
	}
	t.items += int(n)
	for range n {
		if err := t.value(h&15, 0, depth+1); err != nil {
			return err
		}
	}
	return nil
}
