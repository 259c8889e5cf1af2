package data

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"

	"heddle/internal/atomicfile"
	"heddle/token"
)

// A shard holds documents that are tokenized already. Little endian:
//
//	0   8 bytes   "heddleT1"
//	8   uint32    bytes of an id, 2 or 4; its top bit marks an id that is given, not predicted
//	12  uint32    vocabulary of the tokenizer
//	16  16 bytes  token.Tokenizer.Hash
//	32  t ids, zeros up to a multiple of 8
//	    n uint64  where each document ends; the top bit marks one whose end is not predicted
//	    uint64    documents, n
//	    uint64    ids, t
//
// Separators are not stored: the loader puts them in.
const (
	shardSuffix  = ".tokens"
	shardMagic   = "heddleT1"
	shardHeader  = 32
	shardTrailer = 16
	openBit      = 1 << 63
)

// shard is such a file. Its spans are ids lo to hi of one document each.
type shard struct {
	path  string
	width int64
	vocab int32
	hash  string
	all   []span
	open  []bool // per document
}

func openShard(path string, size int64) (source, error) {
	if size < shardHeader+shardTrailer {
		return nil, invalid(path, "%d bytes are too few for a shard", size)
	}
	h, err := readRange(path, 0, shardHeader)
	if err != nil {
		return nil, err
	}
	tail, err := readRange(path, size-shardTrailer, size)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	width, vocab, docs, ids := int64(le.Uint32(h[8:])), le.Uint32(h[12:]), le.Uint64(tail), le.Uint64(tail[8:])
	if string(h[:8]) != shardMagic {
		return nil, invalid(path, "starts with %q, want %q; hint: heddle tokenizer encode --shard makes such files", h[:8], shardMagic)
	}
	if width != 2 && width != 4 || vocab == 0 || vocab > 1<<(8*width-1) {
		return nil, invalid(path, "byte 8: ids of %d bytes for a vocabulary of %d, want 2 or 4 and one that fits with a bit to spare", width, vocab)
	}
	limit := uint64(size) // neither count can be larger, and products of what is left fit
	if docs > limit/8 || ids > limit/uint64(width) || ids == 0 {
		return nil, invalid(path, "byte %d: claims %d documents of %d ids in %d bytes", size-shardTrailer, docs, ids, size)
	}
	ends := shardHeader + (int64(ids)*width+7)/8*8
	if want := ends + int64(docs)*8 + shardTrailer; want != size {
		return nil, invalid(path, "is %d bytes long, but %d ids and %d documents make %d", size, ids, docs, want)
	}
	s := &shard{path: path, width: width, vocab: int32(vocab), hash: hex.EncodeToString(h[16:32])}
	table, err := readRange(path, ends, size-shardTrailer)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	for i := range int(docs) {
		end := le.Uint64(table[8*i:])
		hi := int64(end &^ openBit)
		if hi <= last || hi > int64(ids) {
			return nil, invalid(path, "byte %d: document %d ends at id %d, the one before at %d, want more and at most %d", ends+int64(i)*8, i, hi, last, ids)
		}
		s.all, s.open = append(s.all, span{last, hi}), append(s.open, end&openBit != 0)
		last = hi
	}
	if last != int64(ids) {
		return nil, invalid(path, "documents end at id %d of %d", last, ids)
	}
	return s, nil
}

func (s *shard) tokenizer() string { return s.hash }

func (s *shard) divide(tail int64) (train, held []span) {
	return tailSpans(s.all, tail, func(x span) int64 { return (x.hi - x.lo) * s.width })
}

func (s *shard) read(x span) ([]document, []string, error) {
	raw, err := readRange(s.path, shardHeader+x.lo*s.width, shardHeader+x.hi*s.width)
	if err != nil {
		return nil, nil, err
	}
	i, _ := slices.BinarySearchFunc(s.all, x.lo, func(a span, lo int64) int { return cmp.Compare(a.lo, lo) })
	d := document{open: s.open[i]}
	silentBit := uint32(1) << (8*s.width - 1)
	for i := int64(0); i < x.hi-x.lo; i++ {
		var v uint32
		if s.width == 2 {
			v = uint32(binary.LittleEndian.Uint16(raw[2*i:]))
		} else {
			v = binary.LittleEndian.Uint32(raw[4*i:])
		}
		id, silent := int32(v&^silentBit), v&silentBit != 0
		if id >= s.vocab {
			return nil, nil, invalid(s.path, "byte %d: id %d, want below the vocabulary of %d", shardHeader+(x.lo+i)*s.width, id, s.vocab)
		}
		if n := len(d.pieces); n == 0 || d.pieces[n-1].silent != silent {
			d.pieces = append(d.pieces, piece{silent: silent})
		}
		p := &d.pieces[len(d.pieces)-1]
		p.ids = append(p.ids, id)
	}
	return []document{d}, nil, nil
}

// WriteShard tokenizes the training documents of a corpus, in order of listing, into a shard at path, which holds the old file or the new one, never a part.
// Its name should end in .tokens. Training on it gives the batches that training on the text gives, where none of the text is dropped.
func WriteShard(path string, c *Corpus, t *token.Tokenizer) (Packed, error) {
	w := newShardWriter(t)
	err := atomicfile.Write(atomicfile.OS{}, path, func(out io.Writer) error {
		w.out = out
		if err := w.start(); err != nil {
			return err
		}
		for _, x := range c.train {
			docs, err := c.read(x)
			if err != nil {
				return err
			}
			for _, d := range docs {
				if err := w.add(d); err != nil {
					return err
				}
			}
		}
		if w.packed.Tokens == 0 {
			return invalid("", "no document of the corpus is text: zero samples\n%v", c.Summary())
		}
		return w.finish()
	})
	return w.packed, err
}
