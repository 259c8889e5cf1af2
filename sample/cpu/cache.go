package cpu

import (
	"heddle/compute/cpu/attention"
	"heddle/sample"
)

// page is the keys and values of attention.PageTokens tokens in all layers: [L] times attention.PageLen. Sequences share a
// page that none of them writes.
type page struct {
	data  []float32
	users int
}

// sequence is one cached text.
type sequence struct {
	pages []*page
	n     int // tokens
	open  bool
}

// Fork opens a sequence with the first keep tokens of another one. Full pages are shared, a page that is full in part is copied.
func (d *Decoder) Fork(from sample.Handle, keep int) sample.Handle {
	var s sequence
	s.n, s.open = keep, true
	if keep > 0 {
		src := d.at(from)
		if keep > src.n {
			fail("fork: sequence %d has %d tokens, want %d", from, src.n, keep)
		}
		full := keep / attention.PageTokens
		s.pages = append(s.pages, src.pages[:full]...)
		for _, p := range s.pages {
			p.users++
		}
		if keep%attention.PageTokens > 0 {
			p := d.newPage()
			copy(p.data, src.pages[full].data)
			s.pages = append(s.pages, p)
		}
	}
	for h := range d.seqs {
		if !d.seqs[h].open {
			d.seqs[h] = s
			return sample.Handle(h)
		}
	}
	d.seqs = append(d.seqs, s)
	return sample.Handle(len(d.seqs) - 1)
}

// Close gives a sequence's memory back for the next one.
func (d *Decoder) Close(h sample.Handle) {
	for _, p := range d.at(h).pages {
		if p.users--; p.users == 0 {
			d.free = append(d.free, p)
		}
	}
	d.seqs[h] = sequence{}
}

func (d *Decoder) at(h sample.Handle) *sequence {
	if h < 0 || int(h) >= len(d.seqs) || !d.seqs[h].open {
		fail("there is no sequence %d", h)
	}
	return &d.seqs[h]
}

func (d *Decoder) newPage() *page {
	if n := len(d.free); n > 0 {
		p := d.free[n-1]
		d.free = d.free[:n-1]
		p.users = 1
		return p
	}
	d.pages++
	return &page{make([]float32, d.cfg.Layers*d.pageLen), 1}
}

// layerPages are the parts of a sequence's pages that belong to a layer.
func (d *Decoder) layerPages(dst [][]float32, s *sequence, layer int) [][]float32 {
	for _, p := range s.pages {
		dst = append(dst, p.data[layer*d.pageLen:(layer+1)*d.pageLen])
	}
	return dst
}

// CacheBytes is the memory of all pages made so far, in use or free.
func (d *Decoder) CacheBytes() int { return 4 * d.pages * d.cfg.Layers * d.pageLen }
