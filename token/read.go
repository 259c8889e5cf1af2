package token

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"heddle/internal/strictjson"
)

const maxFile = 256 << 20

// Error is a tokenizer.json, or a vocabulary from elsewhere, that is broken or asks for something we do not do: exit code 3 of the command.
type Error struct {
	Path string // empty where the bytes came without a name
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "token: " + e.Err.Error()
	}
	return "token: " + e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Read reads a tokenizer.json. See Parse.
func Read(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, &Error{path, fmt.Errorf("%d bytes, want a regular file of at most %d", st.Size(), maxFile)}
	}
	src := make([]byte, st.Size())
	if n, err := f.ReadAt(src, 0); n < len(src) {
		return nil, fmt.Errorf("token: read %s: %w", path, err)
	}
	t, err := Parse(src)
	if e, ok := err.(*Error); ok {
		e.Path = path
	}
	return t, err
}

// Parse reads a tokenizer.json of a byte-level BPE: pre-tokenizers of GPT-2, Qwen 2/3, Llama 3 and SmolLM, normalizer NFC or none, merges as strings or
// as pairs. What changes ids and is not known here is refused. Padding, truncation and the post-processor are left aside: Encode does what Hugging
// Face's library does with add_special_tokens=false. An error is an *Error that names the entry.
func Parse(src []byte) (*Tokenizer, error) {
	f := fileReader{Reader: strictjson.New(src), src: src, vocab: make(map[string]int32)}
	err := f.read()
	if err == nil {
		var t *Tokenizer
		if t, err = f.assemble(); err == nil {
			return t, nil
		}
	}
	return nil, &Error{Err: err}
}

// fileReader is a tokenizer.json on its way to becoming parts.
type fileReader struct {
	*strictjson.Reader
	src      []byte
	parts    parts
	hasSplit bool
	hasModel bool
	fuse     bool             // unknown bytes side by side become one token
	vocab    map[string]int32 // as written
	entries  []entry          // of vocab, in order of the file
	pairs    [][2]string      // merges, as written
}

type entry struct {
	text string
	id   int32
}

func (f *fileReader) fault(format string, args ...any) error {
	return strictjson.Errorf(f.Offset(), format, args...)
}

// peek is the first byte of the next value, 0 at the end.
func (f *fileReader) peek() byte {
	if at := f.Offset(); at < len(f.src) {
		return f.src[at]
	}
	return 0
}

// id reads a token id.
func (f *fileReader) id() (int32, error) {
	n, err := f.Uint()
	if err == nil && n >= maxVocab {
		err = f.fault("id %d, want a whole number below %d", n, maxVocab)
	}
	return int32(n), err
}

func (f *fileReader) read() error {
	err := f.Object(func(key string) error {
		switch key {
		case "version", "truncation", "padding", "post_processor":
			return f.Skip()
		case "added_tokens":
			return f.Array(func(int) error { return f.addedToken() })
		case "normalizer":
			return f.normalizer()
		case "pre_tokenizer":
			return f.preTokenizer()
		case "decoder":
			return f.decoder()
		case "model":
			return f.model()
		}
		return f.fault("unknown key %q", key)
	})
	if err != nil {
		return err
	}
	if err := f.End(); err != nil {
		return err
	}
	if !f.hasSplit || !f.hasModel {
		return fmt.Errorf("no pre_tokenizer or no model; want a byte-level BPE")
	}
	return nil
}

// addedToken reads one of added_tokens.
func (f *fileReader) addedToken() error {
	s, hasID := Special{}, false
	err := f.Object(func(key string) (err error) {
		switch key {
		case "id":
			hasID = true
			s.ID, err = f.id()
		case "content":
			s.Content, err = f.String()
		case "special":
			s.Control, err = f.Bool()
		case "normalized":
			s.Normalized, err = f.Bool()
		case "single_word", "lstrip", "rstrip":
			var set bool
			if set, err = f.Bool(); set {
				return f.fault("token %q has %s, which is not supported", s.Content, key)
			}
		default:
			return f.fault("unknown key %q in added_tokens", key)
		}
		return err
	})
	if err == nil && (!hasID || s.Content == "" || strings.ContainsRune(s.Content, 0)) {
		return f.fault("added token %q needs an id and content without NUL", s.Content)
	}
	f.parts.specials = append(f.parts.specials, s)
	return err
}

// step is one pre-tokenizer, normalizer or decoder: its type and those of its fields that matter here.
type step struct {
	kind    string
	pattern string
	flags   map[string]bool
	text    map[string]string
	steps   []step
}

// step reads an object with a type; lists named by `inner` are read as steps of their own.
func (f *fileReader) step(inner string) (s step, err error) {
	s.flags, s.text = make(map[string]bool), make(map[string]string)
	err = f.Object(func(key string) error {
		switch c := f.peek(); {
		case key == inner:
			return f.Array(func(int) error {
				x, err := f.step(inner)
				s.steps = append(s.steps, x)
				return err
			})
		case key == "pattern" && c == '{':
			return f.Object(func(kind string) (err error) {
				if kind != "Regex" {
					return f.fault("pattern of kind %q, want Regex", kind)
				}
				s.pattern, err = f.String()
				return err
			})
		case c == 't' || c == 'f':
			b, err := f.Bool()
			s.flags[key] = b
			return err
		case c == '"':
			text, err := f.String()
			s.text[key] = text
			return err
		}
		return f.fault("field %q is not known here", key)
	})
	s.kind = s.text["type"]
	return s, err
}

// only tells whether the step has no flags and text fields but these.
func (s *step) only(fields ...string) bool {
	for key := range s.flags {
		if !slices.Contains(fields, key) {
			return false
		}
	}
	for key := range s.text {
		if key != "type" && !slices.Contains(fields, key) {
			return false
		}
	}
	return true
}

func (f *fileReader) normalizer() error {
	if f.Null() {
		return nil
	}
	s, err := f.step("normalizers")
	if err != nil {
		return err
	}
	if s.kind == "Sequence" && len(s.steps) == 1 {
		s = s.steps[0]
	}
	if s.kind == "Sequence" && len(s.steps) == 0 {
		return nil
	}
	if s.kind != "NFC" || !s.only() {
		return f.fault("normalizer %q is not supported, want NFC or null", s.kind)
	}
	f.parts.nfc = true
	return nil
}

func (f *fileReader) preTokenizer() error {
	s, err := f.step("pretokenizers")
	if err != nil {
		return err
	}
	steps := []step{s}
	if s.kind == "Sequence" {
		steps = s.steps
	}
	if len(steps) == 0 || len(steps) > 2 {
		return f.fault("%d pre-tokenizers in a row; want a splitting one and ByteLevel", len(steps))
	}
	last := steps[len(steps)-1]
	if last.kind != "ByteLevel" || last.flags["add_prefix_space"] || !last.only("add_prefix_space", "trim_offsets", "use_regex") {
		return f.fault("pre-tokenizer %q (add_prefix_space %t), want ByteLevel without add_prefix_space at the end", last.kind, last.flags["add_prefix_space"])
	}
	ownRegex, set := last.flags["use_regex"]
	ownRegex = ownRegex || !set
	f.hasSplit = true
	if len(steps) == 1 {
		if !ownRegex {
			return f.fault("pre-tokenizer ByteLevel alone with use_regex false: words without end; want a Split in front of it")
		}
		f.parts.split = GPT2
		return nil
	}
	return f.firstStep(steps[0], ownRegex)
}

// firstStep reads what stands in front of ByteLevel.
func (f *fileReader) firstStep(s step, regexFollows bool) error {
	if s.kind == "Digits" && s.flags["individual_digits"] && s.only("individual_digits") && regexFollows {
		f.parts.split = SmolLM
		return nil
	}
	if s.kind != "Split" || s.flags["invert"] || s.text["behavior"] != "Isolated" || !s.only("behavior", "invert") || regexFollows {
		return f.fault("pre-tokenizer %q (behavior %q, invert %t) before ByteLevel (use_regex %t) is not supported", s.kind, s.text["behavior"], s.flags["invert"], regexFollows)
	}
	for _, split := range [...]Split{GPT2, Qwen2, Llama3} {
		if s.pattern == split.pattern() {
			f.parts.split = split
			return nil
		}
	}
	return f.fault("pre-tokenizer pattern %q is none of GPT-2, Qwen 2, Llama 3; ids would be guesses", s.pattern)
}

func (f *fileReader) decoder() error {
	if f.Null() {
		return nil
	}
	s, err := f.step("decoders")
	if err == nil && s.kind == "Sequence" && len(s.steps) == 1 {
		s = s.steps[0]
	}
	if err == nil && s.kind != "ByteLevel" {
		return f.fault("decoder %q, want ByteLevel", s.kind)
	}
	return err
}
