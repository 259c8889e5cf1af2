package data

import (
	"encoding/binary"
	"encoding/hex"
	"io"

	"heddle/token"
)

// shardWriter writes ids as they come; where documents end and how many there are follows.
type shardWriter struct {
	out       io.Writer
	tokenizer *token.Tokenizer
	width     int
	ends      []byte
	packed    Packed
	ids       []int32
	buf       []byte
}

func newShardWriter(t *token.Tokenizer) *shardWriter {
	w := &shardWriter{tokenizer: t, width: 4}
	if t.VocabSize() <= 1<<15 {
		w.width = 2
	}
	return w
}

// start writes the header.
func (w *shardWriter) start() error {
	hash, err := hex.DecodeString(w.tokenizer.Hash())
	if err != nil {
		return err
	}
	h := binary.LittleEndian.AppendUint32([]byte(shardMagic), uint32(w.width))
	h = binary.LittleEndian.AppendUint32(h, uint32(w.tokenizer.VocabSize()))
	_, err = w.out.Write(append(h, hash...))
	return err
}

// add writes the ids of a document.
func (w *shardWriter) add(d document) (err error) {
	before := w.packed.Tokens
	w.buf = w.buf[:0]
	for _, p := range d.pieces {
		if w.ids, err = encode(w.tokenizer, w.ids[:0], p); err != nil {
			return err
		}
		for _, id := range w.ids {
			v := uint32(id)
			if p.silent {
				v |= 1 << (8*w.width - 1)
			}
			if w.width == 2 {
				w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(v))
			} else {
				w.buf = binary.LittleEndian.AppendUint32(w.buf, v)
			}
		}
		w.packed.Tokens += int64(len(w.ids))
	}
	if w.packed.Tokens == before {
		return nil
	}
	end := uint64(w.packed.Tokens)
	if d.open {
		end |= openBit
	}
	w.ends = binary.LittleEndian.AppendUint64(w.ends, end)
	w.packed.Documents++
	w.packed.Bytes += d.bytes()
	_, err = w.out.Write(w.buf)
	return err
}

// finish writes what follows the ids.
func (w *shardWriter) finish() error {
	b := make([]byte, -int(w.packed.Tokens)*w.width&7)
	b = append(b, w.ends...)
	b = binary.LittleEndian.AppendUint64(b, uint64(w.packed.Documents))
	b = binary.LittleEndian.AppendUint64(b, uint64(w.packed.Tokens))
	_, err := w.out.Write(b)
	return err
}
