package trace

import (
	"sync"
	"time"
)

// Recorder collects the events of one rank. Its methods may be called from several goroutines, and on a nil
// Recorder, where they do nothing: code that may be traced needs no branch.
//
// Events go into blocks that are never moved or freed, so that a Span costs a lock nobody else holds and a copy,
// and allocates once in blockLen events.
type Recorder struct {
	rank   int
	epoch  time.Time // carries the monotonic clock that Now reads
	wall   int64     // ns since the Unix epoch at epoch
	mu     sync.Mutex
	blocks [][]record // all full but the last
	args   [][]Arg    // likewise
}

// record is an Event as it is kept: its arguments are args[block][from:to].
type record struct {
	name, cat       string
	track           Track
	start, dur      int64
	block, from, to int32
}

const blockLen = 4096

// NewRecorder makes the recorder of one rank.
func NewRecorder(rank int) *Recorder {
	now := time.Now()
	return &Recorder{rank: rank, epoch: now, wall: now.UnixNano()}
}

// Now is the time that Span wants: ns since the Unix epoch, advanced by the monotonic clock.
func (r *Recorder) Now() int64 {
	if r == nil {
		return 0
	}
	return r.wall + int64(time.Since(r.epoch))
}

// Span records that name took dur ns from start on (both as by Now). args are copied. A negative dur counts as 0.
func (r *Recorder) Span(track Track, name, cat string, start, dur int64, args ...Arg) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := record{name: name, cat: cat, track: track, start: start, dur: max(dur, 0)}
	if len(args) > 0 {
		last := len(r.args) - 1
		if last < 0 || len(r.args[last])+len(args) > cap(r.args[last]) {
			r.args = append(r.args, make([]Arg, 0, max(blockLen, len(args))))
			last++
		}
		e.block, e.from = int32(last), int32(len(r.args[last]))
		r.args[last] = append(r.args[last], args...)
		e.to = int32(len(r.args[last]))
	}
	last := len(r.blocks) - 1
	if last < 0 || len(r.blocks[last]) == blockLen {
		r.blocks = append(r.blocks, make([]record, 0, blockLen))
		last++
	}
	r.blocks[last] = append(r.blocks[last], e)
}

// Add records what somebody else took, as events of this recorder's rank.
func (r *Recorder) Add(all []Event) {
	for _, e := range all {
		r.Span(e.Track, e.Name, e.Cat, e.Start, e.Dur, e.Args...)
	}
}

// Since records that name took from start until now.
func (r *Recorder) Since(track Track, name, cat string, start int64, args ...Arg) {
	if r != nil {
		r.Span(track, name, cat, start, r.Now()-start, args...)
	}
}

// Events are all events recorded so far, in the order of their calls. Their Args must not be changed.
func (r *Recorder) Events() []Event {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Event
	for _, b := range r.blocks {
		for _, e := range b {
			ev := Event{Name: e.name, Cat: e.cat, Rank: r.rank, Track: e.track, Start: e.start, Dur: e.dur}
			if e.to > e.from {
				ev.Args = r.args[e.block][e.from:e.to:e.to]
			}
			all = append(all, ev)
		}
	}
	return all
}
