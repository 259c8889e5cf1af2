package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// The Parquet library believes what pages say about themselves: a page of 30 bytes can make it allocate gigabytes. Before it reads a column, every page is
// unpacked here once, with a bound, and its counts are compared with each other.

const (
	maxPage       = 256 << 20
	maxPageValues = 16 << 20
)

// check looks at the pages of a row group that have not been looked at yet.
func (t *table) check(f *parquet.File, group int, columns []column) error {
	g := &f.Metadata().RowGroups[group]
	for _, c := range columns {
		t.mu.Lock()
		done := t.checked[[2]int{group, c.leaf}]
		t.mu.Unlock()
		if done {
			continue
		}
		if err := t.checkPages(&g.Columns[c.leaf].MetaData, g.NumRows, c); err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		t.mu.Lock()
		t.checked[[2]int{group, c.leaf}] = true
		t.mu.Unlock()
	}
	return nil
}

// checkPages walks the pages of a column.
func (t *table) checkPages(m *format.ColumnMetaData, rows int64, c column) error {
	at := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		at = min(at, m.DictionaryPageOffset)
	}
	if at < 4 || m.TotalCompressedSize < 0 || at > t.size-8 || m.TotalCompressedSize > t.size-8-at || m.NumValues < rows || c.rep == 0 && m.NumValues > rows {
		return fmt.Errorf("claims %d bytes at %d and %d values in %d rows", m.TotalCompressedSize, at, m.NumValues, rows)
	}
	end, values := at+m.TotalCompressedSize, int64(0)
	for at < end {
		head, err := readRange(t.path, at, min(at+64<<10, end))
		if err != nil {
			return err
		}
		w := thrift{b: head, fields: make(map[int32]int64)}
		if err := w.walk(0, 0); err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		p := page{codec: m.Codec, column: c, f: w.fields}
		body := at + int64(w.at)
		if err := p.sizes(end - body); err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		packed, err := readRange(t.path, body, body+p.f[pagePacked])
		if err == nil {
			err = p.check(packed)
		}
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		values += p.f[v1Values] + p.f[v2Values]
		at = body + p.f[pagePacked]
	}
	if values != m.NumValues {
		return fmt.Errorf("pages hold %d values, the footer says %d", values, m.NumValues)
	}
	return nil
}

// page is a page header as thrift.fields has it, and where it belongs.
type page struct {
	codec  format.CompressionCodec
	column column
	f      map[int32]int64
}

// Fields of PageHeader and of the headers in it (parquet.thrift).
const (
	pageKind     = 1
	pageUnpacked = 2
	pagePacked   = 3
	v1Values     = 5<<8 + 1
	v1Encoding   = 5<<8 + 2
	v1DefLevels  = 5<<8 + 3
	v1RepLevels  = 5<<8 + 4
	dictValues   = 7<<8 + 1
	dictEncoding = 7<<8 + 2
	v2Values     = 8<<8 + 1
	v2Encoding   = 8<<8 + 4
	v2DefBytes   = 8<<8 + 5
	v2RepBytes   = 8<<8 + 6
	v2Packed     = 8<<8 + 7

	kindV1, kindDict, kindV2 = 0, 2, 3

	encPlain, encPlainDict, encRLE, encRLEDict = 0, 2, 3, 8
)

var errLevels = errors.New("runs of levels or indices claim more values than the page has")

// sizes compares what the header says with what is left of the column.
func (p *page) sizes(left int64) error {
	f := p.f
	if f[pageUnpacked] < 0 || f[pageUnpacked] > maxPage || f[pagePacked] < 0 || f[pagePacked] > left {
		return fmt.Errorf("claims %d bytes, %d unpacked; %d are left", f[pagePacked], f[pageUnpacked], left)
	}
	for _, key := range [...]int32{v1Values, dictValues, v2Values} {
		if f[key] < 0 || f[key] > maxPageValues {
			return fmt.Errorf("claims %d values, want at most %d", f[key], maxPageValues)
		}
	}
	return nil
}

// check unpacks a page and walks its levels and indices.
func (p *page) check(packed []byte) error {
	f := p.f
	var levels []byte
	switch f[pageKind] {
	case kindDict, kindV1:
	case kindV2:
		n := f[v2DefBytes] + f[v2RepBytes]
		if f[v2DefBytes] < 0 || f[v2RepBytes] < 0 || n > int64(len(packed)) || n > f[pageUnpacked] {
			return errLevels
		}
		levels, packed = packed[:n], packed[n:]
	default:
		return fmt.Errorf("kind %d, want a data or dictionary page", f[pageKind])
	}
	codec := p.codec
	if not, ok := f[v2Packed]; ok && not == 0 && f[pageKind] == kindV2 {
		codec = format.Uncompressed
	}
	body, err := unpack(codec, packed, f[pageUnpacked]-int64(len(levels)))
	if err != nil {
		return err
	}
	switch f[pageKind] {
	case kindDict:
		if e := f[dictEncoding]; e != encPlain && e != encPlainDict {
			return fmt.Errorf("a dictionary in encoding %d, want plain", e)
		}
		return nil
	case kindV2:
		rep, def := levels[:f[v2RepBytes]], levels[f[v2RepBytes]:]
		err = errors.Join(runs(rep, levelBits(p.column.rep), f[v2Values]), runs(def, levelBits(p.column.def), f[v2Values]))
		return errors.Join(err, indices(f[v2Encoding], body, f[v2Values]))
	}
	for _, l := range [...]struct {
		highest int
		enc     int64
	}{{p.column.rep, f[v1RepLevels]}, {p.column.def, f[v1DefLevels]}} {
		if l.highest == 0 {
			continue
		}
		if l.enc != encRLE || len(body) < 4 || int64(binary.LittleEndian.Uint32(body)) > int64(len(body)-4) {
			return errLevels
		}
		n := 4 + binary.LittleEndian.Uint32(body)
		if err := runs(body[4:n], levelBits(l.highest), f[v1Values]); err != nil {
			return err
		}
		body = body[n:]
	}
	return indices(f[v1Encoding], body, f[v1Values])
}

func levelBits(highest int) int { return bits.Len(uint(highest)) }

// indices checks the values of a page: plain text, or indices into the dictionary.
func indices(encoding int64, body []byte, n int64) error {
	switch encoding {
	case encPlain:
		return nil
	case encPlainDict, encRLEDict:
		if len(body) == 0 {
			return nil
		}
		if body[0] > 32 {
			return errLevels
		}
		return runs(body[1:], int(body[0]), n)
	}
	return fmt.Errorf("encoding %d of text is not supported, want plain or a dictionary; hint: write the file without delta encodings", encoding)
}

// runs walks values in Parquet's mixture of run lengths and packed bits. The last eight packed values may be filled up.
func runs(b []byte, width int, n int64) error {
	total := uint64(0)
	for len(b) > 0 {
		h, k := binary.Uvarint(b)
		if k <= 0 {
			return errLevels
		}
		b = b[k:]
		count, size := h>>1, uint64(width+7)/8
		if h&1 == 1 {
			if count > maxPageValues {
				return errLevels
			}
			count, size = count*8, count*uint64(width)
		}
		if total += count; count > maxPageValues || total > uint64(n)+7 || size > uint64(len(b)) {
			return errLevels
		}
		b = b[size:]
	}
	return nil
}

// unpack decompresses a page to exactly n bytes.
func unpack(codec format.CompressionCodec, packed []byte, n int64) (body []byte, err error) {
	switch codec {
	case format.Uncompressed:
		body = packed
	case format.Snappy:
		if k, err := snappy.DecodedLen(packed); err != nil || int64(k) != n {
			return nil, fmt.Errorf("unpacks to %d bytes, claims %d", k, n)
		}
		body, err = snappy.Decode(nil, packed)
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			body, err = io.ReadAll(io.LimitReader(r, n+1))
		}
	case format.Zstd:
		var r *zstd.Decoder
		if r, err = zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage)); err == nil {
			body, err = io.ReadAll(io.LimitReader(r, n+1))
			r.Close()
		}
	default:
		return nil, fmt.Errorf("compression %v is not supported, want none, snappy, gzip or zstd", codec)
	}
	if err == nil && int64(len(body)) != n {
		err = fmt.Errorf("unpacks to %d bytes, claims %d", len(body), n)
	}
	return body, err
}
