package analyze

// Report is what Bubbles finds. It prints as the JSON of heddle trace bubbles --json.
type Report struct {
	Devices  []Device `json:"devices"`
	Causes   []Total  `json:"causes"` // over all devices, most time first
	Ranks    *Ranks   `json:"ranks,omitempty"`
	Advice   []Advice `json:"advice"`
	Files    []File   `json:"files"`
	Warnings []string `json:"warnings"`
}

// File says what was read of a file.
type File struct {
	File    string           `json:"file"`
	Format  string           `json:"format"`
	Rank    *int             `json:"rank,omitempty"`
	Events  int64            `json:"events"`
	Kept    int64            `json:"kept"`
	Dropped map[string]int64 `json:"dropped,omitempty"`
}

// Device is a device of a file. Times are µs; those of gaps are relative to its first kernel. Busy is the union of
// its kernels; copies count apart.
type Device struct {
	Device    int     `json:"device"`
	Name      string  `json:"name,omitempty"`
	File      string  `json:"file"`
	Rank      *int    `json:"rank,omitempty"`
	Kernels   int     `json:"kernels"`
	BusyUS    float64 `json:"busy_us"`
	IdleUS    float64 `json:"idle_us"`
	SpanUS    float64 `json:"span_us"`
	Streams   int     `json:"streams"`
	FirstNS   int64   `json:"first_ns"` // the first kernel, on the file's clock, with its base time added
	GapCount  int     `json:"gap_count"`
	Gaps      []Gap   `json:"gaps"` // longest first, those below the threshold left out
	Copies    int     `json:"copies"`
	CopyUS    float64 `json:"copy_us"`    // union of copies and fills
	Comm      int     `json:"comm"`       // kernels that communicate
	CommUS    float64 `json:"comm_us"`    // their union
	OverlapUS float64 `json:"overlap_us"` // of which other kernels ran at the same time
	Exposed   []Gap   `json:"exposed"`    // the rest: only communication ran, longest first
	StartupUS float64 `json:"startup_us"` // from the first recorded event of the host to the first kernel
	TailUS    float64 `json:"tail_us"`    // from the last kernel to the last recorded event of the host
	Linked    int     `json:"linked"`     // kernels whose launch call was recorded
	Unlinked  int     `json:"unlinked"`
	DelayUS   float64 `json:"median_launch_delay_us"` // from begin of the call to begin of the kernel
	Causes    []Total `json:"causes"`
	Pairs     []Pair  `json:"pairs"`
	Steps     []Total `json:"steps"`

	spans    deviceSpans
	timeline *Timeline
}

// Gap is a time in which no kernel ran, or, in Exposed, none but communication.
type Gap struct {
	StartUS  float64 `json:"start_us"`
	DurUS    float64 `json:"dur_us"`
	Cause    Cause   `json:"cause"`
	Before   string  `json:"before"` // the kernel that ended last
	After    string  `json:"after"`  // the kernel that ended the gap
	Stream   string  `json:"stream,omitempty"`
	Corr     *int64  `json:"correlation,omitempty"` // of after
	Call     string  `json:"call,omitempty"`        // of the host that mattered
	Range    string  `json:"range,omitempty"`       // of the host that mattered
	Step     string  `json:"step,omitempty"`
	Evidence string  `json:"evidence"`

	start, end int64
}

// Total is time by cause or by step.
type Total struct {
	Cause string  `json:"cause,omitempty"`
	Step  string  `json:"step,omitempty"`
	Count int     `json:"count"`
	US    float64 `json:"us"`
	Busy  bool    `json:"busy,omitempty"` // the device was not idle but communicating
}

// Pair is time between two kernels.
type Pair struct {
	Before string  `json:"before"`
	After  string  `json:"after"`
	Count  int     `json:"count"`
	US     float64 `json:"us"`
	Cause  Cause   `json:"cause"` // of most of it
}

// Advice is what to do about a cause.
type Advice struct {
	Cause Cause   `json:"cause"`
	US    float64 `json:"us"` // at stake, over all devices
	Text  string  `json:"text"`
}

// Cause is why the device waited.
type Cause string

// Causes, in the order in which they are considered.
const (
	CauseSync       Cause = "sync"          // the host waited for the device, then launched
	CauseCopy       Cause = "copy"          // data was moved meanwhile
	CauseStartup    Cause = "start-up"      // code was loaded, once
	CauseLaunch     Cause = "launch"        // the host launched as fast as it could
	CauseHost       Cause = "host"          // the host did something else
	CauseComm       Cause = "communication" // waited for communication
	CauseDependency Cause = "dependency"    // waited for another stream
	CauseLaunchGap  Cause = "launch-gap"    // was queued in time: what the device needs between two kernels
	CauseGraph      Cause = "graph"         // a graph ran whose kernels were not recorded
	CauseUnknown    Cause = "unknown"
)

func micros(ns int64) float64 { return float64(ns) / 1000 }
