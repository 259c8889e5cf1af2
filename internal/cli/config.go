package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Origins say where each value of a configuration comes from, by dotted key. A key that is absent has its default.
type Origins map[string]string

// LoadConfig fills the struct that into points to: a YAML file over the defaults it holds, variables HEDDLE_A_B (for key a.b)
// over the file, overrides "a.b=value" over both. Unknown keys, values of another type and values that YAML would bend (010,
// 2.5 for an integer, .nan, nothing at all) are refused with file, line and column. A file may name another as its base.
func LoadConfig(into any, file string, environ, overrides []string) (Origins, error) {
	l := loader{root: reflect.ValueOf(into).Elem(), from: Origins{}}
	if file != "" {
		if err := l.file(file, map[string]bool{}); err != nil {
			return nil, err
		}
	}
	if err := l.environ(environ); err != nil {
		return nil, err
	}
	for _, o := range overrides {
		key, value, ok := strings.Cut(o, "=")
		if !ok {
			return nil, fmt.Errorf("config: %q is no override; hint: key=value, as in parallel.tp=2", o)
		}
		if err := l.text(key, value, "command line"); err != nil {
			return nil, err
		}
	}
	return l.from, nil
}

type loader struct {
	root reflect.Value
	from Origins
}

func (l *loader) file(path string, seen map[string]bool) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if seen[abs] {
		return fmt.Errorf("config: %s is its own base", path)
	}
	seen[abs] = true
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	const most = 1 << 20
	src, err := io.ReadAll(io.LimitReader(f, most+1)) // a pipe has no size to ask for
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if len(src) > most {
		return fmt.Errorf("config: %s has more than %d bytes", path, most)
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return fmt.Errorf("config: %s is empty, want keys and values; hint: steps: 200", path)
	} else if err != nil {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	if dec.Decode(&more) == nil {
		return fmt.Errorf("config: %s:%d: a second document", path, more.Line)
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("config: %s:%d: want keys and values", path, top.Line)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "base" {
			if b := top.Content[i+1]; b.Kind != yaml.ScalarNode || b.Value == "" || b.Tag == "!!null" {
				return fmt.Errorf("config: %s:%d:%d: base wants the path of one file", path, b.Line, b.Column)
			}
			if err := l.file(filepath.Join(filepath.Dir(path), top.Content[i+1].Value), seen); err != nil {
				return err
			}
			top.Content = append(top.Content[:i], top.Content[i+2:]...)
			break
		}
	}
	return l.mapping(path, "", l.root, top)
}

func (l *loader) mapping(path, prefix string, v reflect.Value, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("config: %s:%d:%d: %s wants keys and values", path, n.Line, n.Column, strings.TrimSuffix(prefix, "."))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		at := fmt.Sprintf("%s:%d:%d", path, k.Line, k.Column)
		f, err := field(v, k.Value)
		if err != nil {
			return fmt.Errorf("config: %s: %s%w", at, prefix, err)
		}
		if seen[k.Value] {
			return fmt.Errorf("config: %s: %s%s stands twice", at, prefix, k.Value)
		}
		seen[k.Value] = true
		key := prefix + k.Value
		if f.Kind() == reflect.Struct {
			if err := l.mapping(path, key+".", f, val); err != nil {
				return err
			}
			continue
		}
		if err := set(f, val); err != nil {
			return fmt.Errorf("config: %s:%d:%d: %s: %w", path, val.Line, val.Column, key, err)
		}
		l.from[key] = at
	}
	return nil
}

func (l *loader) environ(environ []string) error {
	names := map[string]string{}
	for _, key := range Keys(l.root.Interface()) {
		names["HEDDLE_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = key
	}
	sort.Strings(environ)
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if key := names[name]; key != "" {
			if err := l.text(key, value, "$"+name); err != nil {
				return err
			}
		} else if near := misspelt(name, names); near != "" {
			return fmt.Errorf("config: $%s is no key; hint: %s", name, near)
		}
	}
	return nil
}

// misspelt is the variable that name was most likely meant to be, "" where it is like none: it may be another program's.
func misspelt(name string, names map[string]string) (near string) {
	if !strings.HasPrefix(name, "HEDDLE_") {
		return ""
	}
	best := 3
	for n := range names {
		if d := edits(name, n); d < best || d == best && n < near {
			near, best = n, d
		}
	}
	if best > 2 {
		return ""
	}
	return near
}

// text sets one key from its YAML text.
func (l *loader) text(key, value, origin string) error {
	v := l.root
	for _, part := range strings.Split(key, ".") {
		if v.Kind() != reflect.Struct {
			return fmt.Errorf("config: %s: %s has no keys below %s", origin, key, part)
		}
		f, err := field(v, part)
		if err != nil {
			return fmt.Errorf("config: %s: %s: %w", origin, key, err)
		}
		v = f
	}
	if v.Kind() == reflect.Struct {
		return fmt.Errorf("config: %s: %s is a group of keys; hint: %s.KEY=value", origin, key, key)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	if v.Kind() == reflect.Slice {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(value), &doc) == nil && len(doc.Content) == 1 && doc.Content[0].Kind == yaml.SequenceNode {
			n = doc.Content[0]
		}
	}
	if err := set(v, n); err != nil {
		return fmt.Errorf("config: %s: %s: %w", origin, key, err)
	}
	l.from[key] = origin
	return nil
}

// field finds the struct field of a key and names the nearest where there is none.
func field(v reflect.Value, key string) (reflect.Value, error) {
	if key == "" {
		return reflect.Value{}, fmt.Errorf("a key is empty; hint: key=value, as in parallel.tp=2")
	}
	best, distance := "", len(key)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == key && name != "-" && name != "" {
			return v.Field(i), nil
		}
		if d := edits(key, name); name != "-" && d < distance {
			best, distance = name, d
		}
	}
	if best == "" || distance > 3 {
		return reflect.Value{}, fmt.Errorf("%s is no key here", key)
	}
	return reflect.Value{}, fmt.Errorf("%s is no key here; hint: %s", key, best)
}

var (
	integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	decimal = regexp.MustCompile(`^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
)

// set puts a node into a field without bending it.
func set(f reflect.Value, n *yaml.Node) error {
	if f.Kind() == reflect.Slice {
		return setList(f, n)
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("want one value")
	}
	text, quoted := n.Value, n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.TaggedStyle) != 0
	if text == "" && !quoted && f.Kind() != reflect.String || n.Tag == "!!null" {
		return fmt.Errorf("has no value")
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
		return nil
	case reflect.Bool:
		if text != "true" && text != "false" || quoted {
			return fmt.Errorf("%q, want true or false", text)
		}
		f.SetBool(text == "true")
		return nil
	case reflect.Int, reflect.Int64:
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil || quoted || !integer.MatchString(text) {
			return fmt.Errorf("%q, want a whole number", text)
		}
		f.SetInt(x)
		return nil
	case reflect.Uint64:
		x, err := strconv.ParseUint(text, 10, 64)
		if err != nil || quoted || !integer.MatchString(text) {
			return fmt.Errorf("%q, want a whole number of 0 or more", text)
		}
		f.SetUint(x)
		return nil
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || quoted || !decimal.MatchString(text) {
			return fmt.Errorf("%q, want a number", text)
		}
		f.SetFloat(x)
		return nil
	}
	return fmt.Errorf("a value of kind %s cannot be configured", f.Kind())
}

func setList(f reflect.Value, n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	} else if n.Kind != yaml.ScalarNode || n.Value == "" {
		return fmt.Errorf("want a list, as in [a, b]")
	}
	out := reflect.MakeSlice(f.Type(), len(items), len(items))
	for i, x := range items {
		if err := set(out.Index(i), x); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	f.Set(out)
	return nil
}

// Keys lists the dotted keys of a configuration struct in its order.
func Keys(c any) (out []string) {
	walk(reflect.ValueOf(c), "", func(key string, _ reflect.Value) { out = append(out, key) })
	return out
}

func walk(v reflect.Value, prefix string, f func(key string, v reflect.Value)) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		switch {
		case name == "" || name == "-":
		case v.Field(i).Kind() == reflect.Struct:
			walk(v.Field(i), prefix+name+".", f)
		default:
			f(prefix+name, v.Field(i))
		}
	}
}

// PrintConfig writes the effective configuration as YAML, each value with its origin as a comment.
func PrintConfig(c any, from Origins) string {
	var b strings.Builder
	printGroup(&b, reflect.ValueOf(c), "", "", from)
	return b.String()
}

func printGroup(b *strings.Builder, v reflect.Value, prefix, indent string, from Origins) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		if v.Field(i).Kind() == reflect.Struct {
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			printGroup(b, v.Field(i), prefix+name+".", indent+"  ", from)
			continue
		}
		text, err := yaml.Marshal(v.Field(i).Interface())
		if err != nil {
			continue
		}
		value := strings.TrimSpace(string(text))
		if v.Field(i).Kind() == reflect.Slice {
			value = flow(v.Field(i))
		}
		origin := from[prefix+name]
		if origin == "" {
			origin = "default"
		}
		fmt.Fprintf(b, "%s%s: %s # %s\n", indent, name, value, origin)
	}
}

// flow is a list on one line.
func flow(v reflect.Value) string {
	var items []string
	for i := range v.Len() {
		items = append(items, strconv.Quote(fmt.Sprint(v.Index(i).Interface())))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// edits is the Levenshtein distance (1966) of two short words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
