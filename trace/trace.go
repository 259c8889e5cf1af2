// Package trace holds the events of a timeline, the recorder that collects them while a rank works, and heddle's
// own file format: Chrome's JSON trace, one process a rank, one thread a track, which ui.perfetto.dev opens as it is.
//
// It knows nothing of engines or GPUs, and what a timeline means is decided in trace/analyze. Start with Recorder,
// then Write and Read.
package trace

import "strconv"

// Track is one row of a rank's timeline: work that happens one after the other. Compute and Collectives are the
// device's rows, Host the row of phases; any other name (a stream of a GPU, a thread) makes a row of its own.
type Track string

const (
	Compute     Track = "compute"
	Collectives Track = "collectives"
	Host        Track = "host"
)

// Categories that trace/analyze gives a meaning to. Others are shown and otherwise ignored.
const (
	Kernel     = "kernel"          // work on the device; on a CPU rank one operation of its leaf
	Collective = "collective"      // communication with other ranks; arg "bytes"
	Copy       = "gpu_memcpy"      // data moved to, from or within the device
	Fill       = "gpu_memset"      // a device's memory set to a value
	Launch     = "cuda_runtime"    // a call into the driver on the host; arg "correlation" names what it launched
	Wait       = "cuda_sync"       // a stream waits for another; named "Stream Wait Event", on the waiting stream's track
	Phase      = "user_annotation" // a named range on the host: forward, backward, layer 3
	Step       = "step"            // one training step on the host; arg "step"
)

// Event is something that took time: a span on a track of a rank.
type Event struct {
	Name  string
	Cat   string
	Rank  int
	Track Track
	Start int64 // ns since the Unix epoch
	Dur   int64 // ns, never negative
	Args  []Arg
}

// Arg is a small fact about an event: a number, or a text where Text is set.
type Arg struct {
	Key   string
	Value int64
	Text  string
}

// Int is an argument that is a whole number.
func Int(key string, value int64) Arg { return Arg{Key: key, Value: value} }

// Text is an argument that is text. The empty text reads back as the number 0.
func Text(key, value string) Arg { return Arg{Key: key, Text: value} }

func (a Arg) String() string {
	if a.Text != "" {
		return a.Key + "=" + a.Text
	}
	return a.Key + "=" + strconv.FormatInt(a.Value, 10)
}
