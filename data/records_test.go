package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/token"
)

// labelled reads the stream of a corpus without shuffling: every token as text, in lower case where it is only given and in upper case where it is
// predicted, with | for a predicted separator and / for one that is not. Texts in these tests are in lower case.
func labelled(t testing.TB, c *Corpus, tok *token.Tokenizer) string {
	t.Helper()
	l := loader(t, c, tok, Pack{Seq: 1 << 16, Batch: 1, Epochs: 1})
	var w window
	if _, err := l.stream.window(&w, position{}, 1, 1<<16); err != nil {
		t.Fatal(err)
	}
	sep, _ := tok.Separator()
	var b strings.Builder
	for i, id := range w.tokens {
		text, err := tok.Decode(nil, []int32{id})
		if err != nil {
			t.Fatal(err)
		}
		switch p := w.flags[i]&predicted != 0; {
		case id == sep && p:
			b.WriteString("|")
		case id == sep:
			b.WriteString("/")
		case p:
			b.WriteString(strings.ToUpper(string(text)))
		default:
			b.Write(text)
		}
	}
	return b.String()
}

func plainTemplate(t testing.TB, name string) *Template {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewTemplate(string(src), map[string]string{"bos_token": "<s>", "eos_token": "</s>"})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestOnlyCompletionsArePredicted reads files of one record; the order of documents does not matter then.
func TestOnlyCompletionsArePredicted(t *testing.T) {
	tok := bytesOnly(t)
	for _, c := range []struct{ name, line, template, field, want string }{
		{"text", `{"text": "all of it", "id": 7}`, "", "", "|ALL OF IT|"},
		{"another column", `{"code": "x", "text": "y"}`, "", "code", "|X|"},
		{"pair", `{"prompt": "one? ", "completion": "two", "source": null}`, "", "", "|one? TWO|"},
		{"pair without prompt", `{"prompt": null, "completion": "two"}`, "", "", "|TWO|"},
		{"chat", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}`,
			"plain.jinja", "", "|<s><user>a\n<assistant>B</S>\n<user>c\n<assistant>D</S>\n/"},
		{"rewritten chat", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>t</think>b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}`,
			"rewriting.jinja", "", "|[user]\na[end]\n[assistant]\n<THINK>T</THINK>B[END]\n/[user]\na[end]\n[assistant]\nb[end]\n[user]\nc[end]\n[assistant]\nD[END]\n/"},
		{"two kinds", `{"messages": [], "text": "y"}`, "", "text", "|Y|"},
	} {
		cfg := Config{Paths: []string{filepath.Join(folder(t, "a.jsonl", c.line+"\n"), "a.jsonl")}, HoldOutEvery: -1, Field: c.field}
		if c.template != "" {
			cfg.Template = plainTemplate(t, c.template)
		}
		if got := labelled(t, open(t, cfg), tok); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSeparatorFollowsItsDocument packs a chat, whose template ends its own turns, and a text in both orders: the separator behind the chat is not a label, wherever
// a window ends.
func TestSeparatorFollowsItsDocument(t *testing.T) {
	tok := bytesOnly(t)
	dir := folder(t, "a.jsonl", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`+"\n", "b.txt", "xyz")
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1, Template: plainTemplate(t, "plain.jinja")})
	chat, text := "<s><user>a\n<assistant>B</S>\n", "XYZ"
	a, b := "|"+chat+"/"+text+"|", "|"+text+"|"+chat+"/"
	if got := labelled(t, c, tok); got != a && got != b {
		t.Errorf("%q, want %q or %q", got, a, b)
	}
	for seq := 1; seq < 20; seq++ {
		want := 2*len(text) + 2*len("B</S>\n") + 2 // two epochs; one separator behind the text in each
		l, labels := loader(t, c, tok, Pack{Seq: seq, Batch: 1, Window: seq, Epochs: 2, Seed: uint64(seq)}), 0
		for _, b := range drain(t, l) {
			labels += b.Tokens
		}
		if labels != want {
			t.Errorf("seq %d: %d labels, want %d", seq, labels, want)
		}
	}
}

func TestBrokenRecordsAreNamed(t *testing.T) {
	tok := bytesOnly(t)
	good := `{"text": "a"}` + "\n"
	for name, c := range map[string]struct{ line, says string }{
		"no JSON":         {"text\n", "byte 15"},
		"cut off":         {`{"text": "a`, "byte 15"},
		"null":            {"null\n", "want an object"},
		"a list":          {`["a"]` + "\n", "byte 15"},
		"number for text": {`{"text": 5}` + "\n", `"text" is 5`},
		"no column":       {`{"Text": "a"}` + "\n", `"Text"`},
		"two columns":     {`{"text": "a", "messages": []}` + "\n", "want 1"},
		"chat":            {`{"messages": []}` + "\n", "no chat template"},
		"not UTF-8":       {"{\"text\": \"\xff\"}\n", "UTF-8"},
		"two objects":     {`{"text": "a"} {"text": "b"}` + "\n", "byte 15"},
		"a key twice":     {`{"text": "a", "text": "b"}` + "\n", "occurs twice"},
		"by escape":       {`{"text": "a", "te\u0078t": "b"}` + "\n", "occurs twice"},
		"lone surrogate":  {`{"text": "\ud83d"}` + "\n", "surrogate"},
	} {
		dir := folder(t, "a.jsonl", good+"\n"+c.line)
		x := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
		_, err := NewLoader(x, tok, Pack{Seq: 1, Batch: 100, Epochs: 1})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "a.jsonl") {
			t.Errorf("%s: %v; want an *Error with a.jsonl and %q", name, err, c.says)
		}
	}
}

func TestDroppedRecordsAreCounted(t *testing.T) {
	dir := folder(t, "a.jsonl", `{"text": "a"}`+"\n"+`{"text": ""}`+"\n\n"+`{"text": null}`+"\n"+`{"prompt": "a", "completion": ""}`+"\n"+
		`{"messages": [{"role": "user", "content": "a"}]}`+"\n")
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1, Template: plainTemplate(t, "plain.jinja")})
	if got := labelled(t, c, bytesOnly(t)); got != "|A|" {
		t.Errorf("stream %q", got)
	}
	got := map[string]int{}
	for _, d := range c.Summary().Dropped {
		got[d.Why] = d.Count
	}
	want := map[string]int{"empty text": 2, "empty completion": 1, "a chat without an assistant's turn": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) || c.Summary().Documents != 5 {
		t.Errorf("dropped %v of %d, want %v of 5", got, c.Summary().Documents, want)
	}
	dir = folder(t, "a.jsonl", `{"text": ""}`+"\n")
	if _, err := NewLoader(open(t, Config{Paths: []string{dir}, HoldOutEvery: -1}), bytesOnly(t), Pack{Seq: 1, Batch: 1}); err == nil || !strings.Contains(err.Error(), "zero samples") {
		t.Errorf("only empty records: %v, want zero samples", err)
	}
	dir = folder(t, "a.jsonl", "\n \n")
	if _, err := Open(Config{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "zero samples") {
		t.Errorf("only blank lines: %v, want zero samples", err)
	}
}

// TestRecordsAreHeldOutFromOneFile also checks that evaluation counts completions only.
func TestRecordsAreHeldOutFromOneFile(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `{"prompt": "question %d: ", "completion": "answer %d"}`+"\n", i, i)
	}
	c := open(t, Config{Paths: []string{filepath.Join(folder(t, "a.jsonl", b.String()), "a.jsonl")}})
	if len(c.train)+len(c.held) != 200 || len(c.held) != 20 {
		t.Fatalf("%d to train on, %d held out, want 180 and 20", len(c.train), len(c.held))
	}
	e, err := NewEval(c, bytesOnly(t), EvalPack{Seq: 7, Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	var labels []byte
	for b := range e.Batches() {
		for _, l := range b.Labels {
			if l != Ignore {
				labels, _ = bytesOnly(t).Decode(labels, []int32{l})
			}
		}
	}
	want := ""
	for i := 180; i < 200; i++ {
		want += fmt.Sprintf("answer %d", i)
	}
	if string(labels) != want || e.Bytes != int64(len(want)) || e.Tokens != e.Bytes {
		t.Errorf("labels %q (%d bytes, %d tokens), want %q", labels, e.Bytes, e.Tokens, want)
	}
}

// TestTemplatesRenderLikeJinja compares with what jinja2, set up as transformers does, has written to testdata/rendered.json (testdata/make.py).
func TestTemplatesRenderLikeJinja(t *testing.T) {
	var cases []struct {
		Template string
		Messages []json.RawMessage
		Tools    json.RawMessage
		Answer   bool
	}
	var want []string
	for file, v := range map[string]any{"chats.json": &cases, "rendered.json": &want} {
		src, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(src, v); err != nil {
			t.Fatal(err)
		}
	}
	if len(cases) < 17 || len(cases) != len(want) {
		t.Fatalf("%d cases, %d renderings", len(cases), len(want))
	}
	for i, c := range cases {
		got, err := plainTemplate(t, c.Template).Render(c.Messages, c.Tools, c.Answer)
		if err != nil || got != want[i] {
			t.Errorf("case %d, %s: %q (%v), want %q", i, c.Template, got, err, want[i])
		}
	}
}

func TestTemplatesFailAsErrors(t *testing.T) {
	for _, src := range []string{"{% for %}", "{{", "{% if x %}", "{% nothing %}", strings.Repeat("x", maxTemplate+1)} {
		if _, err := NewTemplate(src, nil); err == nil {
			t.Errorf("%.40q was parsed", src)
		}
	}
	message := []json.RawMessage{json.RawMessage(`{"role": "wizard", "content": "a"}`)}
	if _, err := plainTemplate(t, "plain.jinja").Render(message, nil, false); err == nil || !strings.Contains(err.Error(), "unknown role wizard") {
		t.Errorf("raise_exception gave %v", err)
	}
	for _, src := range []string{"{% include '/etc/passwd' %}", "{{ messages[0].content.nothing.more }}", "{% for i in range(100000000) %}x{% endfor %}", "{{ 'a' | nofilter }}"} {
		x, err := NewTemplate(src, nil)
		if err != nil {
			continue
		}
		if out, err := x.Render(message, nil, false); err == nil {
			t.Errorf("%q rendered %.40q", src, out)
		}
	}
}

func TestRenderingIsBounded(t *testing.T) {
	var l limited
	part := make([]byte, maxRendered/2)
	for i := range 3 {
		if _, err := l.Write(part); (err == nil) != (i < 2) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

func TestReadTemplateOfAFolder(t *testing.T) {
	dir := folder(t, "a/tokenizer_config.json", `{"chat_template": "{{ bos_token }}!{{ eos_token }}", "bos_token": {"content": "<b>"}, "eos_token": "<e>", "pad_token": null}`,
		"b/tokenizer_config.json", `{"bos_token": "<b>"}`, "b/chat_template.jinja", "file {{ bos_token }}", "c/tokenizer_config.json", `{"eos_token": "<e>"}`, "d/x", "")
	for name, want := range map[string]string{"a": "<b>!<e>", "b": "file <b>"} {
		x, err := ReadTemplate(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Render(nil, nil, false); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"c", "d"} {
		var e *Error
		if _, err := ReadTemplate(filepath.Join(dir, name)); !errors.As(err, &e) {
			t.Errorf("%s: %v, want an *Error", name, err)
		}
	}
}

func TestParquetIsWhatPyarrowWrote(t *testing.T) {
	tok := bytesOnly(t)
	read := func(name, field string) *Corpus {
		return open(t, Config{Paths: []string{filepath.Join("testdata", name)}, HoldOutEvery: -1, Field: field, Template: plainTemplate(t, "plain.jinja")})
	}
	c, row := read("text.parquet", ""), 0
	for _, d := range c.train {
		docs, err := c.read(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range docs {
			if got, want := string(x.pieces[0].text), fmt.Sprintf("row %d: %s世界", row, strings.Repeat("text ", row%7)); got != want {
				t.Errorf("row %d: %q, want %q", row, got, want)
			}
			row++
		}
	}
	if row != 100 {
		t.Errorf("%d rows, want 100", row)
	}
	// The order of blocks is shuffled, so the streams are compared by what they contain.
	pairs := labelled(t, read("pairs.parquet", ""), tok)
	for i := range 20 {
		if want := fmt.Sprintf("|%d + %d = %d|", i, i, 2*i); strings.Contains(pairs, want) != (i != 3) {
			t.Errorf("pair %d: %q in %q", i, want, pairs)
		}
	}
	chats := labelled(t, read("chat.parquet", ""), tok)
	for i := range 10 {
		want := fmt.Sprintf("<s><user>say %d\n<assistant>%d</S>\n", i, i)
		if i%3 == 2 {
			want += fmt.Sprintf("<user>say %d\n<assistant>%d</S>\n", i, i)
		}
		if strings.Contains(chats, want+"/") != (i%3 > 0) {
			t.Errorf("chat %d: %q in %q", i, want, chats)
		}
	}
	if _, err := Open(Config{Paths: []string{"testdata/text.parquet"}, Field: "id"}); err == nil || !strings.Contains(err.Error(), `"id"`) {
		t.Errorf("a column of numbers: %v", err)
	}
}

// TestShardIsTheText compares batches made from a shard with those made from the text it was made of.
func TestShardIsTheText(t *testing.T) {
	dir, _ := texts(t, 40)
	tok := bytesOnly(t)
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
	path := filepath.Join(t.TempDir(), "all.tokens")
	packed, err := WriteShard(path, c, tok)
	if err != nil {
		t.Fatal(err)
	}
	if packed.Documents != 40 || packed.Bytes != c.Summary().Bytes || packed.Tokens != packed.Bytes {
		t.Errorf("packed %+v of %d bytes", packed, c.Summary().Bytes)
	}
	p := Pack{Seq: 20, Batch: 3, Epochs: 2, Seed: 4, Segments: true}
	text, shard := loader(t, c, tok, p), loader(t, open(t, Config{Paths: []string{path}, HoldOutEvery: -1}), tok, p)
	for {
		a, errA := text.Next()
		b, errB := shard.Next()
		if errA == io.EOF && errB == io.EOF {
			break
		}
		if errA != nil || errB != nil || fmt.Sprint(*a) != fmt.Sprint(*b) {
			t.Fatalf("batches differ (%v, %v)", errA, errB)
		}
	}
	chat := open(t, Config{Paths: []string{"testdata/chat.parquet"}, HoldOutEvery: -1, Template: plainTemplate(t, "plain.jinja")})
	if _, err := WriteShard(path, chat, tok); err != nil {
		t.Fatal(err)
	}
	shardChat := open(t, Config{Paths: []string{path}, HoldOutEvery: -1})
	want, got := labelled(t, chat, tok), labelled(t, shardChat, tok)
	for _, s := range strings.SplitAfter(want, "/") {
		if !strings.Contains(got, s) {
			t.Errorf("the shard's stream %q lacks %q", got, s)
		}
	}
	if len(want) != len(got) {
		t.Errorf("the shard's stream is %d tokens long, want %d", len(got), len(want))
	}
	other, err := token.Train(func(yield func([]byte) bool) { yield([]byte("aaaaaa")) }, token.TrainOptions{VocabSize: 258})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewLoader(shardChat, other, p); err == nil || !strings.Contains(err.Error(), "made by tokenizer") {
		t.Errorf("another tokenizer: %v", err)
	}
}

// TestABatchWithoutALabelIsPassedOver packs short answers behind prompts that are longer than a batch: labels of both epochs are all given out, in batches
// that each have one, and a cursor between them goes on alike. Answers without a token, as a shard may hold, are refused after a pass over all of them.
func TestABatchWithoutALabelIsPassedOver(t *testing.T) {
	tok := bytesOnly(t)
	var lines strings.Builder
	const n, seq = 9, 16
	for i := range n {
		fmt.Fprintf(&lines, `{"prompt": %q, "completion": "yes"}`+"\n", strings.Repeat("why? ", 40+7*i))
	}
	c := open(t, Config{Paths: []string{filepath.Join(folder(t, "a.jsonl", lines.String()), "a.jsonl")}, HoldOutEvery: -1})
	p := Pack{Seq: seq, Batch: 2, Window: 64, Epochs: 2, Seed: 3}
	l := loader(t, c, tok, p)
	labels, rest := 0, 0
	var at Cursor
	for k := 0; ; k++ {
		b, err := l.Next()
		if err == io.EOF {
			break
		}
		if err != nil || b.Tokens == 0 {
			t.Fatalf("batch %d: %d labels, %v", k, b.Tokens, err)
		}
		if labels += b.Tokens; k > 5 {
			rest += b.Tokens
		}
		if k == 5 {
			at = l.Cursor()
		}
	}
	if want := 2 * n * len("yes|"); labels != want {
		t.Errorf("%d labels, want %d", labels, want)
	}
	again := loader(t, c, tok, p)
	if err := again.Seek(at); err != nil {
		t.Fatal(err)
	}
	for _, b := range drain(t, again) {
		rest -= b.Tokens
	}
	if rest != 0 {
		t.Errorf("after the cursor %d labels are missing", rest)
	}

	mute := open(t, Config{Paths: []string{folder(t, "a.txt", strings.Repeat("only a prompt\n", 40))}, HoldOutEvery: -1})
	for i := range mute.files {
		mute.files[i].source = silent{mute.files[i].source}
	}
	if _, err := loader(t, mute, tok, Pack{Seq: seq, Batch: 2, Window: 64}).Next(); err == nil || !strings.Contains(err.Error(), "hint: data with answers") {
		t.Errorf("a corpus without a label: %v", err)
	}
}

// silent is a source whose text is all prompt.
type silent struct{ source }

func (s silent) read(at span) ([]document, []string, error) {
	docs, dropped, err := s.source.read(at)
	for i := range docs {
		docs[i].open = true
		for j := range docs[i].pieces {
			docs[i].pieces[j].silent = true
		}
	}
	return docs, dropped, err
}
