package report

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/trace"
	"heddle/trace/analyze"
)

// recorded is a small run of two ranks with awkward names.
func recorded(t testing.TB) []*analyze.Timeline {
	t.Helper()
	var recs []*trace.Recorder
	for rank := range 2 {
		rec := trace.NewRecorder(rank)
		late := int64(rank) * 300_000
		rec.Span(trace.Host, "step 1", trace.Step, 0, 3_000_000)
		rec.Span(trace.Host, "load \x1b[31m</script><b>"+strings.Repeat("long ", 30), trace.Phase, 100_000, 900_000)
		rec.Span(trace.Compute, "void "+strings.Repeat("ns::", 40)+"matmul<float>(int)", trace.Kernel, 10_000, 80_000+late)
		rec.Span(trace.Compute, strings.Repeat("softmaxµ", 30), trace.Kernel, 1_100_000, 50_000)
		rec.Span(trace.Collectives, "all-reduce", trace.Collective, 1_150_000+late, 500_000-late, trace.Int("bytes", 1<<30))
		recs = append(recs, rec)
	}
	var b bytes.Buffer
	if err := trace.Write(&b, recs...); err != nil {
		t.Fatal(err)
	}
	tl, err := analyze.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	tl.Source = strings.Repeat("folder/", 20) + "trace.json"
	return []*analyze.Timeline{tl}
}

var colour = regexp.MustCompile("\x1b\\[[0-9]+m")

// No line is wider than 80 columns, none holds control characters from a file; colour adds codes and nothing else.
func TestTextFitsATerminal(t *testing.T) {
	reports := map[string]*analyze.Report{"recorded": analyze.Bubbles(recorded(t), analyze.Options{})}
	files, _ := filepath.Glob("../../shared/traces/*/*.*")
	for _, f := range files {
		tl, err := analyze.Open(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		reports[f] = analyze.Bubbles([]*analyze.Timeline{tl}, analyze.Options{})
	}
	for name, r := range reports {
		var plain, coloured bytes.Buffer
		BubbleText{Top: 20}.Write(&plain, r)
		BubbleText{Top: 20, Color: true}.Write(&coloured, r)
		if colour.ReplaceAllString(coloured.String(), "") != plain.String() {
			t.Errorf("%s: colour changes the text", name)
		}
		for _, line := range strings.Split(plain.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > width || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%s: line of %d columns: %q", name, n, line)
			}
		}
	}
}

func TestTextSaysWhatMatters(t *testing.T) {
	r := analyze.Bubbles(recorded(t), analyze.Options{})
	if r.Ranks == nil {
		t.Fatal("two ranks with collectives: no comparison")
	}
	var b bytes.Buffer
	BubbleText{Top: 3}.Write(&b, r)
	for _, want := range []string{"Device 0  rank 0", "busy 630.0 µs (38.4 %)", "idle 1.010 ms in 1 gap", "matmul → ", "host", "straggler: rank 1, last in 1; the others waited 300.0 µs", "At stake, and what helps"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// The page holds the data as JSON that no name can break out of, and nothing to fetch from elsewhere.
func TestPageHoldsTheTimeline(t *testing.T) {
	timelines := recorded(t)
	r := analyze.Bubbles(timelines, analyze.Options{})
	var b bytes.Buffer
	if err := BubbleHTML(&b, r, timelines); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	if n := strings.Count(html, "</script>"); n != 2 {
		t.Errorf("%d ends of scripts, want 2: a name broke out", n)
	}
	if m := regexp.MustCompile(`(src|href)=|https?://|@import`).FindString(html); m != "" {
		t.Errorf("the page wants %q", m)
	}
	_, data, _ := strings.Cut(html, `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var p page
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		t.Fatal(err)
	}
	kernels, gaps := 0, 0
	for _, row := range p.Rows {
		for i := 0; i < len(row.Items); i += 4 {
			if row.Items[i+3] <= int64(analyze.Comm) {
				kernels++
			}
			if row.Items[i+1] < 0 || int(row.Items[i+2]) >= len(p.Names) {
				t.Errorf("row %s: item %v", row.Label, row.Items[i:i+4])
			}
		}
	}
	for _, d := range p.Report.Devices {
		gaps += len(d.Gaps)
	}
	if kernels != 6 || gaps != 3 || len(p.Zero) != 2 || p.LeftOut != 0 {
		t.Errorf("%d kernels, %d gaps, zero %v, %d left out", kernels, gaps, p.Zero, p.LeftOut)
	}
}

// A page with too many events keeps the longest and says how many it left out.
func TestPageLeavesOutTheShortest(t *testing.T) {
	rec := trace.NewRecorder(0)
	const extra = 1000
	for i := range int64(pageItems + extra) {
		rec.Span(trace.Compute, "k", trace.Kernel, i*10_000, 1+i%5000)
	}
	var b, out bytes.Buffer
	if err := trace.Write(&b, rec); err != nil {
		t.Fatal(err)
	}
	tl, err := analyze.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	timelines := []*analyze.Timeline{tl}
	if err := BubbleHTML(&out, analyze.Bubbles(timelines, analyze.Options{}), timelines); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`"leftOut":([0-9]+)`).FindStringSubmatch(out.String())
	// Durations repeat every 5000 events, 40.2 times each: leaving out the least 1000 leaves out 24 to 25 of them whole.
	if m == nil || len(m[1]) != 3 || out.Len() > 12<<20 {
		t.Errorf("left out %v, %d bytes", m, out.Len())
	}
}
