package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is one thing that is not as it was.
type Field struct {
	Name  string
	Saved string // "" when the checkpoint does not know the field
	Now   string // "" when this run does not
}

// Difference is an error that lists what differs between a checkpoint and the run that wants it.
type Difference struct {
	What   string
	Fields []Field
	Hint   string
}

func (d *Difference) Error() string {
	var list []string
	for _, f := range d.Fields {
		list = append(list, fmt.Sprintf("%s was %s, is %s", f.Name, quote(f.Saved), quote(f.Now)))
	}
	s := "checkpoint: " + d.What + ": " + strings.Join(list, "; ")
	if d.Hint != "" {
		s += "; hint: " + d.Hint
	}
	return s
}

func quote(s string) string {
	if s == "" {
		return "not given"
	}
	return fmt.Sprintf("%.80q", s)
}

// Same compares the checkpoint's identity with that of the run that wants to go on. Fields in allow may differ; one that names no field of either is an
// error, since it would have no effect. A *Difference lists the others.
func (m Meta) Same(now map[string]string, allow []string) error {
	all := maps.Clone(now)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, m.Identity)
	for _, a := range allow {
		if _, ok := all[a]; !ok {
			return fmt.Errorf("checkpoint: there is no field %q to allow; hint: use one of %s", a, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
	d := &Difference{What: fmt.Sprintf("the checkpoint of step %d was made by a different run", m.Step)}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m.Identity[name] != now[name] && !slices.Contains(allow, name) {
			d.Fields = append(d.Fields, Field{name, m.Identity[name], now[name]})
		}
	}
	if d.Fields == nil {
		return nil
	}
	var names []string
	for _, f := range d.Fields {
		names = append(names, f.Name)
	}
	d.Hint = "go on with --allow=" + strings.Join(names, ",")
	return d
}
