package tile

import "fmt"

// Work is a GEMM cut into tiles of BM × BN, going through K in steps of BK, with operands of ElemBytes.
type Work struct {
	BM, BN, BK, K, ElemBytes int
}

// Wave is a set of clusters that run at the same time, and what they read: a stripe is the BM (or BN) rows of A (or B) along the whole of K.
type Wave struct {
	First    int `json:"first"` // index in the path of its first cluster
	Clusters int `json:"clusters"`
	Tiles    int `json:"tiles"`
	StripesA int `json:"stripes_a"`
	StripesB int `json:"stripes_b"`
	NewA     int `json:"new_a"` // not touched by the wave before
	NewB     int `json:"new_b"`
	Bytes    int `json:"bytes"`     // of all stripes touched
	NewBytes int `json:"new_bytes"` // of those not touched by the wave before
}

// Waves cuts a path into waves of as many whole clusters as sms multiprocessors hold, one CTA each.
func (s Schedule) Waves(path []Pos, sms int, w Work) ([]Wave, error) {
	s, err := s.checked()
	if err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	at := sms / (s.ClusterM * s.ClusterN)
	if at < 1 {
		return nil, fmt.Errorf("tile: no cluster of %d × %d fits on %d SMs", s.ClusterM, s.ClusterN, sms)
	}
	var out []Wave
	lastA, lastB := map[int]bool{}, map[int]bool{}
	for first := 0; first < len(path); first += at {
		v := Wave{First: first, Clusters: min(at, len(path)-first)}
		a, b := map[int]bool{}, map[int]bool{}
		for _, c := range path[first : first+v.Clusters] {
			for _, p := range s.Tiles(c) {
				v.Tiles++
				a[p.M], b[p.N] = true, true
			}
		}
		v.StripesA, v.StripesB, v.NewA, v.NewB = len(a), len(b), fresh(a, lastA), fresh(b, lastB)
		v.Bytes = (v.StripesA*w.BM + v.StripesB*w.BN) * w.K * w.ElemBytes
		v.NewBytes = (v.NewA*w.BM + v.NewB*w.BN) * w.K * w.ElemBytes
		out, lastA, lastB = append(out, v), a, b
	}
	return out, nil
}

func fresh(now, before map[int]bool) (n int) {
	for x := range now {
		if !before[x] {
			n++
		}
	}
	return n
}

func (w Work) check() error {
	for _, x := range []struct {
		name   string
		v, max int
	}{{"BM", w.BM, 1 << 12}, {"BN", w.BN, 1 << 12}, {"BK", w.BK, 1 << 12}, {"K", w.K, 1 << 24}, {"bytes of an element", w.ElemBytes, 16}} {
		if x.v < 1 || x.v > x.max {
			return fmt.Errorf("tile: work with %s %d, want 1 to %d", x.name, x.v, x.max)
		}
	}
	return nil
}
