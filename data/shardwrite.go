package data

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"os"

	"heddle/token"
)

// shardWriter writes ids as they come; ends and header follow when all are known.
type shardWriter struct {
	f         *os.File
	w         *bufio.Writer
	tokenizer *token.Tokenizer
	width     int
	ends      []uint64
	packed    Packed
	ids       []int32
	err       error
}

func newShardWriter(f *os.File, t *token.Tokenizer) *shardWriter {
	w := &shardWriter{f: f, w: bufio.NewWriterSize(f, 1<<20), tokenizer: t, width: 4}
	if t.VocabSize() <= 1<<15 {
		w.width = 2
	}
	w.write(make([]byte, shardHeader))
	return w
}

// write keeps the first error.
func (w *shardWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

func (w *shardWriter) add(d document) (err error) {
	before := w.packed.Tokens
	var b [4]byte
	for _, p := range d.pieces {
		if w.ids, err = encode(w.tokenizer, w.ids[:0], p); err != nil {
			return err
		}
		for _, id := range w.ids {
			v := uint32(id)
			if p.silent {
				v |= 1 << (8*w.width - 1)
			}
			binary.LittleEndian.PutUint32(b[:], v)
			w.write(b[:w.width])
		}
		w.packed.Tokens += int64(len(w.ids))
	}
	if w.packed.Tokens == before {
		return w.err
	}
	end := uint64(w.packed.Tokens)
	if d.open {
		end |= openBit
	}
	w.ends = append(w.ends, end)
	w.packed.Documents++
	w.packed.Bytes += d.bytes()
	return w.err
}

func (w *shardWriter) finish() error {
	w.write(make([]byte, -int(w.packed.Tokens)*w.width&7))
	for _, end := range w.ends {
		w.write(binary.LittleEndian.AppendUint64(nil, end))
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	hash, err := hex.DecodeString(w.tokenizer.Hash())
	if w.err != nil || err != nil {
		return w.err
	}
	h := []byte(shardMagic)
	h = binary.LittleEndian.AppendUint32(h, uint32(w.width))
	h = binary.LittleEndian.AppendUint32(h, uint32(w.tokenizer.VocabSize()))
	h = append(h, hash...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(w.ends)))
	h = binary.LittleEndian.AppendUint64(h, uint64(w.packed.Tokens))
	_, err = w.f.WriteAt(h, 0)
	return err
}
