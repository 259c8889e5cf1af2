package trace

import "bytes"

// Raw is an event of a Chrome trace as it stands in the file. All slices are valid only until the next event.
// Texts are the bytes between the quotes, escapes and all: Unescape turns them into what they mean.
type Raw struct {
	Ph        byte // 0 if absent
	Name, Cat []byte
	Pid, Tid  []byte // a number's digits or a text
	Start     int64  // ns
	Dur       int64  // ns
	HasStart  bool   // ts was there and a time
	HasDur    bool
	args      []byte // the object as it stands
}

// RawArg is an argument as it stands in the file.
type RawArg struct{ Key, Value []byte }

// parse reads the event that starts with the { at b[i] and returns the index behind it, short or bad.
func (r *Raw) parse(b []byte, i int, skip func(ph byte) bool) int {
	*r = Raw{}
	for i++; ; {
		if i = skipSpace(b, i); i == len(b) {
			return short
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
			continue
		case '"':
		default:
			return bad
		}
		var k []byte
		if k, i = key(b, i); i < 0 {
			return i
		}
		next := skipValue(b, i)
		if next < 0 {
			return next
		}
		r.set(k, unquote(b[i:next]))
		i = next
		if skip != nil && string(k) == "ph" && skip(r.Ph) {
			return skipContainer(b, i, 1)
		}
	}
}

// set keeps a field of the event.
func (r *Raw) set(key, v []byte) {
	switch string(key) {
	case "ph":
		if len(v) > 0 {
			r.Ph = v[0]
		}
	case "name":
		r.Name = v
	case "cat":
		r.Cat = v
	case "pid":
		r.Pid = v
	case "tid":
		r.Tid = v
	case "ts":
		r.Start, r.HasStart = parseMicros(v)
	case "dur":
		r.Dur, r.HasDur = parseMicros(v)
	case "args":
		r.args = v
	}
}

// Args reads all arguments that are numbers, texts or literals; lists and objects are left out.
func (r *Raw) Args() (all []RawArg) {
	b := r.args
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	for i := 1; ; {
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i++
			continue
		}
		if i == len(b) || b[i] != '"' {
			return all
		}
		k, at := key(b, i)
		if at < 0 {
			return all
		}
		if i = skipValue(b, at); i < 0 {
			return all
		}
		if b[at] != '{' && b[at] != '[' {
			all = append(all, RawArg{k, unquote(b[at:i])})
		}
	}
}

// Arg is the value of an argument, nil if there is none. It looks for the key without reading what stands before it,
// which takes a flat object: a second { might hold the same key.
func (r *Raw) Arg(name string) []byte {
	if bytes.Count(r.args, []byte{'{'}) > 1 {
		for _, a := range r.Args() {
			if string(a.Key) == name {
				return a.Value
			}
		}
		return nil
	}
	for i := 0; ; {
		n := bytes.Index(r.args[i:], []byte(name))
		if n < 1 {
			return nil
		}
		i += n
		if r.args[i-1] == '"' && (i < 2 || r.args[i-2] != '\\') && i+len(name) < len(r.args) && r.args[i+len(name)] == '"' {
			// A text that equals the key is followed by no colon.
			if _, at := key(r.args, i-1); at > 0 {
				if end := skipValue(r.args, at); end > 0 {
					return unquote(r.args[at:end])
				}
			}
		}
		i += len(name)
	}
}
