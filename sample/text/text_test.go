package text

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/token"
)

// words is a tokenizer of single bytes: every character but ASCII takes several tokens.
func words(t testing.TB) *token.Tokenizer {
	t.Helper()
	tok, err := token.Train(slices.Values([][]byte{[]byte("a")}), token.TrainOptions{VocabSize: token.LeastVocab, Split: token.Qwen2})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// What a stream gives is the text of all ids, and no piece ends inside a character.
func TestStreamGivesWholeCharacters(t *testing.T) {
	tok := words(t)
	for _, text := range []string{"plain", "zwölf Boxkämpfer", "織機", "🧶🧵 e\u0301", "bad \xff\xe7\xb9 bytes", "\xf0\x9f", "cut \xe7\xb9", "\x80\x80\x80\x80\x80"} {
		s := Stream{Tokenizer: tok}
		var all strings.Builder
		for _, id := range tok.EncodeText(nil, []byte(text)) {
			piece := s.Add(id)
			if valid := strings.ToValidUTF8(text, "\ufffd") == text; valid && strings.ContainsRune(piece, '\ufffd') {
				t.Errorf("%q: piece %q is broken", text, piece)
			}
			all.WriteString(piece)
		}
		all.WriteString(s.End())
		if want := token.Text([]byte(text)); all.String() != want {
			t.Errorf("%q: stream gives %q, want %q", text, all.String(), want)
		}
	}
}

func TestPromptBegins(t *testing.T) {
	m := Model{Tokenizer: words(t), Begin: -1}
	end, _ := m.Tokenizer.Separator()
	for _, c := range []struct {
		begin int32
		text  string
		want  []int32
	}{{-1, "ab", []int32{97, 98}}, {7, "a", []int32{7, 97}}, {-1, "", []int32{end}}, {7, "", []int32{7}}} {
		m.Begin = c.begin
		want := slices.Clone(c.want)
		for i, id := range want { // the tokenizer numbers bytes as it likes
			if id >= 97 && id < 256 {
				want[i] = m.Tokenizer.EncodeText(nil, []byte{byte(id)})[0]
			}
		}
		if got, err := m.Prompt(c.text); err != nil || !slices.Equal(got, want) {
			t.Errorf("begin %d, %q: %v, %v, want %v", c.begin, c.text, got, err, want)
		}
	}
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBeginsReadsThePostProcessor(t *testing.T) {
	tok := words(t)
	end, _ := tok.Separator()
	single := `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "` + token.EndOfText + `", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}`
	for text, want := range map[string]int32{
		`{}`:                       -1,
		`{"post_processor": null}`: -1,
		`{"post_processor": {"type": "ByteLevel"}}`:                                                       -1,
		`{"post_processor": ` + single + `}`:                                                              end,
		`{"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, ` + single + `]}}`: end,
		`{"post_processor": {"single": [{"Sequence": {"id": "A"}}]}}`:                                     -1,
	} {
		if got, err := begins(write(t, "tokenizer.json", text), tok); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	if _, err := begins(write(t, "tokenizer.json", `{"post_processor": {"single": [{"SpecialToken": {"id": "<x>"}}]}}`), tok); err == nil {
		t.Error("no error for a token that is not there")
	}
}

func TestGenerationConfigAddsEnds(t *testing.T) {
	for text, want := range map[string][]int32{`{}`: nil, `{"eos_token_id": null}`: nil, `{"eos_token_id": 4}`: {4}, `{"eos_token_id": [4, 5, 4]}`: {4, 5}, `{"eos_token_id": 999}`: nil} {
		m := Model{}
		m.Config.Vocab = 10
		if err := m.generationConfig(write(t, "generation_config.json", text)); err != nil || !slices.Equal(m.Stop, want) {
			t.Errorf("%s: %v, %v, want %v", text, m.Stop, err, want)
		}
	}
	m := Model{}
	if err := m.generationConfig(write(t, "generation_config.json", `{"eos_token_id": "x"}`)); err == nil {
		t.Error("no error for a text")
	}
	if err := m.generationConfig(filepath.Join(t.TempDir(), "none.json")); err != nil {
		t.Error(err)
	}
}

// The ends that config.json names are ends of texts; a tokenizer larger than the model is refused.
func TestCheckTakesTheEnds(t *testing.T) {
	m := Model{Tokenizer: words(t)}
	m.Config.Vocab, m.Config.EOS = m.Tokenizer.VocabSize(), []int{5, 7}
	if err := m.check(); err != nil || !slices.Equal(m.Stop, []int32{5, 7}) {
		t.Errorf("ends %v, %v", m.Stop, err)
	}
	m.Config.Vocab--
	if err := m.check(); err == nil {
		t.Error("no error for a tokenizer with more tokens than the model")
	}
}

func TestReadAsks(t *testing.T) {
	asks, err := ReadAsks(write(t, "p.txt", "one\r\n\ntwo {\"prompt\": 1}\n"))
	if err != nil || len(asks) != 2 || asks[0].Prompt != "one" || asks[1].Prompt != `two {"prompt": 1}` {
		t.Errorf("%+v, %v", asks, err)
	}
	asks, err = ReadAsks(write(t, "p.jsonl", "{\"prompt\": \"a\\nb\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"c\"}]}"))
	if err != nil || len(asks) != 2 || asks[0].Prompt != "a\nb" || asks[1].Messages[0] != (Message{"user", "c"}) {
		t.Errorf("%+v, %v", asks, err)
	}
	for _, text := range []string{"", "\n \n", "{}", `{"prompt": "a", "messages": [{"role": "user"}]}`, `{"text": "a"}`, `{"prompt": "a"} {}`, `{"prompt": 1}`, "[1]", "x"} {
		if asks, err := ReadAsks(write(t, "p.jsonl", text)); err == nil {
			t.Errorf("%q: no error, %+v", text, asks)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run", checkpoints), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		filepath.Join(dir, "none"):       "no such file",
		filepath.Join(dir, "none.gguf"):  "no such file",
		filepath.Join(dir, "none@3"):     "no checkpoints",
		filepath.Join(dir, "none@x"):     "no step",
		filepath.Join(dir, "run"):        "without @STEP",
		filepath.Join(dir, "run") + "@4": "without @STEP",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", path, err, says)
		}
	}
}

// A line is refused or is one prompt; it never panics.
func FuzzParseAsk(f *testing.F) {
	for _, s := range []string{`{"prompt": "a"}`, `{"messages": [{"role": "user", "content": "c"}]}`, `{"prompt": "a"} 1`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if a, err := parseAsk(line); err == nil && (a.Prompt == "") == (len(a.Messages) == 0) {
			t.Errorf("%q is accepted as %+v", line, a)
		}
	})
}
