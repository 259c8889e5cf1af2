// Package fuzz holds the fuzz targets of the readers of timelines, one each. They are apart from the readers' other
// tests because those link SQLite, whose size makes a fuzzer thousands of times slower.
package fuzz

import (
	"bytes"
	"math"
	"os"
	"testing"

	"heddle/trace/analyze"
	"heddle/trace/sqlite"
)

// check reads a file of any format: that must not panic, and the gaps of what was read must add up to the idle time.
func check(t *testing.T, b []byte) {
	tl, err := analyze.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	for _, d := range analyze.Bubbles([]*analyze.Timeline{tl, tl}, analyze.Options{}).Devices {
		sum := 0.0
		for _, g := range d.Gaps {
			if sum += g.DurUS; g.DurUS <= 0 || g.Cause == "" || g.Evidence == "" {
				t.Errorf("gap %+v", g)
			}
		}
		// Each µs value is rounded once, so n gaps are off by n+2 roundings of the largest number among them.
		if tol := float64(d.GapCount+2) * d.SpanUS * 0x1p-52; math.Abs(sum-d.IdleUS) > tol || len(d.Gaps) != d.GapCount {
			t.Errorf("%d gaps add up to %v, idle is %v", len(d.Gaps), sum, d.IdleUS)
		}
	}
	if _, err := analyze.WriteChrome(&bytes.Buffer{}, []*analyze.Timeline{tl}); err != nil {
		t.Error(err)
	}
}

const kineto = `{"schemaVersion":1,"distributedInfo":{"rank":0},"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":77,"tid":77,"ts":0.000,"dur":3,"args":{"correlation":101}},
{"ph":"X","cat":"kernel","name":"void gemm<float>(int)","pid":0,"tid":7,"ts":5,"dur":50,"args":{"device":0,"stream":7,"correlation":101}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":77,"tid":77,"ts":9,"dur":60,"args":{"correlation":102}},
{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":9,"ts":70,"dur":1,"args":{"device":0,"stream":9,"wait_on_stream":7}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":77,"tid":77,"ts":80,"dur":3,"args":{"correlation":103}},
{"ph":"X","cat":"kernel","name":"ncclAllReduce","pid":0,"tid":9,"ts":90,"dur":5.5,"args":{"device":0,"stream":9,"correlation":103}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy","pid":0,"tid":9,"ts":60,"dur":2,"args":{"device":0,"stream":9,"bytes":5}},
{"ph":"X","cat":"user_annotation","name":"step 1","pid":77,"tid":77,"ts":0,"dur":100},
{"ph":"B","pid":1,"tid":1,"ts":3,"name":"b"},{"ph":"E","pid":1,"tid":1,"ts":4}],"baseTimeNanoseconds":1700000000000000000}`

const jax = `[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:1"}},
{"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14"}},
{"ph":"X","pid":1,"tid":14,"ts":100,"dur":10.5,"name":"fusion","args":{"correlation_id":"5"}},
{"ph":"X","pid":1,"tid":14,"ts":130,"dur":1,"name":"fusion.2"},
{"ph":"X","pid":7,"tid":5,"ts":90,"dur":5,"name":"cuLaunchKernel","args":{"correlation_id":"5"}}]`

func FuzzChrome(f *testing.F) {
	f.Add([]byte(kineto))
	f.Add([]byte(jax))
	f.Add([]byte(`{"heddle":1,"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":3,"tid":1,"ts":1,"dur":1}]}`))
	f.Fuzz(check)
}

// FuzzNsight changes one byte and the length of an export, which finds more than changing all of it.
func FuzzNsight(f *testing.F) {
	b, err := os.ReadFile("testdata/made.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint32(0), byte(0))
	f.Add(b[:len(b)-700], uint32(28), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at uint32, x byte) {
		if len(b) > 0 {
			b = bytes.Clone(b)
			b[int(at)%len(b)] ^= x
		}
		check(t, b)
	})
}

// FuzzSQLite reads all columns of all tables.
func FuzzSQLite(f *testing.F) {
	b, err := os.ReadFile("testdata/made.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := sqlite.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for i, table := range file.Tables {
			rows := 0
			err := file.Scan(table, table.Columns, func(v []sqlite.Value) error { rows++; return nil })
			if err != nil || rows > len(b) { // a row takes at least a byte of the file
				t.Errorf("table %d: %d rows in %d bytes, %v", i, rows, len(b), err)
			}
			if i == 20 {
				return
			}
		}
	})
}
