package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/data"
)

// chatJob is the main job on a file of chats.
func chatJob(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, `{"messages": [{"role": "user", "content": "what is %d + %d?"}, {"role": "assistant", "content": "%d"}]}`+"\n", i, i, 2*i)
	}
	template := `{"chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"}`
	for name, text := range map[string]string{"chats.jsonl": lines.String(), "tokenizer_config.json": template} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := Default()
	c.Data.Paths, c.Data.Suffix = []string{filepath.Join(dir, "chats.jsonl")}, ""
	c.Data.Template, c.Data.Tokenizer = dir, filepath.Join("..", "token", "testdata", "qwen2.json")
	return c
}

// TestChatsTrainOnAnswers decodes the labels of a batch: they are answers with their end, nothing of the questions.
func TestChatsTrainOnAnswers(t *testing.T) {
	j, err := Prepare(chatJob(t), func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	if j.Config.Model.Vocab != Default().Model.Vocab {
		t.Errorf("a named tokenizer changed the model's vocabulary to %d", j.Config.Model.Vocab)
	}
	b, err := j.Loader.Next()
	if err != nil {
		t.Fatal(err)
	}
	var labels []byte
	for _, id := range b.Labels {
		if id != data.Ignore {
			if labels, err = j.Tokenizer.Decode(labels, []int32{id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	answers := strings.Split(string(labels), "</>")
	if len(answers) < 20 || strings.Trim(string(labels), "0123456789</>") != "" || b.Tokens >= b.B*b.S/2 {
		t.Errorf("%d labels of %d: %.200q", b.Tokens, b.B*b.S, labels)
	}
}

func TestRecordKeysAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"absent template":     {func(c *Config) { c.Data.Template = t.TempDir() }, "tokenizer_config.json"},
		"no template":         {func(c *Config) { c.Data.Template = "" }, "no chat template"},
		"absent tokenizer":    {func(c *Config) { c.Data.Tokenizer = "absent.json" }, "absent.json"},
		"too small a model":   {func(c *Config) { c.Model.Vocab = 300 }, "model.vocab="},
		"no such column":      {func(c *Config) { c.Data.Field = "nothing" }, "nothing"},
		"two tokenizers":      {func(c *Config) { c.Init = "somewhere" }, "somewhere"},
		"smaller than a step": {func(c *Config) { c.Seq = 1 << 14 }, "smaller than one batch"},
	} {
		cfg := chatJob(t)
		c.change(&cfg)
		_, err := Prepare(cfg, func(string, ...any) {})
		var bad *Invalid
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an *Invalid with %q", name, err, c.says)
		}
	}
}
