package analyze

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// recorded are runs that heddle launch bubbles recorded, each with one known reason for the device to wait.
type recorded struct {
	Name   string  `json:"name"`
	Cause  Cause   `json:"cause"`
	Count  int     `json:"count"`
	Micros float64 `json:"us"`
	File   string  `json:"file"`
	How    string  `json:"how"`
}

// The cause that was injected is the one that the report names, for as many gaps as there are bubbles and as long as they were at least; everything else together is shorter.
func TestCausesOfRecordedBubbles(t *testing.T) {
	for _, dir := range []string{"testdata/bubbles/cupti", "testdata/bubbles/events"} {
		b, err := os.ReadFile(filepath.Join(dir, "bubbles.json"))
		if err != nil {
			t.Fatal(err)
		}
		var all []recorded
		if err := json.Unmarshal(b, &all); err != nil || len(all) < 5 {
			t.Fatalf("%s: %d bubbles, %v", dir, len(all), err)
		}
		for _, x := range all {
			causes := causesOf(t, filepath.Join(dir, x.File))
			rest := 0.0
			for c, sum := range causes {
				if c != x.Cause {
					rest += sum.us
				}
			}
			if got := causes[x.Cause]; got.gaps < x.Count || got.us < x.Micros || rest > got.us {
				t.Errorf("%s, %s: %d gaps of %s, %.0f µs, want %d and %.0f at least; all causes %v", dir, x.Name, got.gaps, x.Cause, got.us, x.Count, x.Micros, causes)
			}
		}
	}
}

type found struct {
	gaps int
	us   float64
}

func causesOf(t *testing.T, path string) map[Cause]found {
	t.Helper()
	sums := map[Cause]found{}
	for _, c := range recordedDevices(t, path)[0].Causes {
		if !c.Busy {
			sums[Cause(c.Cause)] = found{c.Count, c.US}
		}
	}
	return sums
}

func recordedDevices(t *testing.T, path string) []Device {
	t.Helper()
	tl, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Bubbles([]*Timeline{tl}, Options{})
	if len(r.Devices) == 0 {
		t.Fatalf("%s: no device", path)
	}
	return r.Devices
}

// Four CPU ranks that heddle train --trace recorded: nothing runs beside a collective, so each is communication, and carries the bytes that its rank received.
func TestCollectivesOfRecordedRanksAreCommunication(t *testing.T) {
	tl, err := Open("testdata/bubbles/ranks.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	collectives, bytes := map[int]int{}, map[int]int64{}
	for _, w := range tl.Work {
		if w.Kind == Comm {
			rank := tl.Streams[w.Stream].Device
			collectives[rank]++
			bytes[rank] += w.Bytes
			if w.Group == 0 {
				t.Errorf("a collective of rank %d has no group", rank)
			}
		}
	}
	devices := recordedDevices(t, "testdata/bubbles/ranks.json")
	if len(devices) != 4 {
		t.Fatalf("%d devices", len(devices))
	}
	for _, d := range devices {
		exposed := 0
		for _, c := range d.Causes {
			if c.Busy && Cause(c.Cause) == CauseComm {
				exposed = c.Count
			}
		}
		if exposed == 0 || collectives[d.Device] != collectives[0] || bytes[0] == 0 || max(bytes[d.Device], bytes[0])-min(bytes[d.Device], bytes[0]) > bytes[0]/100 { // chunks of tensors that ranks do not divide differ
			t.Errorf("rank %d: %d alone of %d collectives, %d bytes; rank 0 has %d, %d bytes", d.Device, exposed, collectives[d.Device], bytes[d.Device], collectives[0], bytes[0])
		}
	}
}
