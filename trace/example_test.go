package trace_test

import (
	"fmt"
	"os"

	"heddle/trace"
)

// An engine records what it does, a rank at a time, and writes one file. Here the times are given; while working they
// come from Now.
func ExampleRecorder() {
	rec := trace.NewRecorder(0)
	rec.Span(trace.Host, "forward", trace.Phase, 1_000, 9_000)
	rec.Span(trace.Compute, "matmul", trace.Kernel, 2_000, 4_000, trace.Int("flops", 1<<20))
	rec.Span(trace.Collectives, "all-reduce", trace.Collective, 6_000, 3_500, trace.Int("bytes", 4096), trace.Text("group", "tp"))
	if err := trace.Write(os.Stdout, rec); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"heddle":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1000,"traceEvents":[
	// {"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0"}},
	// {"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
	// {"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"host"}},
	// {"ph":"X","name":"forward","cat":"user_annotation","pid":0,"tid":1,"ts":0,"dur":9},
	// {"ph":"M","name":"thread_name","pid":0,"tid":2,"args":{"name":"compute"}},
	// {"ph":"X","name":"matmul","cat":"kernel","pid":0,"tid":2,"ts":1,"dur":4,"args":{"flops":1048576}},
	// {"ph":"M","name":"thread_name","pid":0,"tid":3,"args":{"name":"collectives"}},
	// {"ph":"X","name":"all-reduce","cat":"collective","pid":0,"tid":3,"ts":5,"dur":3.500,"args":{"bytes":4096,"group":"tp"}}
	// ]}
}
