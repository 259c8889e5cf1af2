package parallel

import (
	"fmt"
	"strconv"
	"strings"
)

// kinds are the words that scheme names are made of, in the order of Name.
var kinds = [...]string{"dp", "fsdp", "ulysses", "tp", "megatron"}

// ParseLayout reads a scheme's name: "single", or words with their ranks joined by "-", as in "fsdp2-megatron4". A word is
// dp, fsdp, tp, megatron (tp with the residual stream cut over it) or ulysses (cp); each stands once.
func ParseLayout(name string) (Layout, error) {
	var l Layout
	if name == "single" {
		return l, nil
	}
	for word := range strings.SplitSeq(name, "-") {
		kind := strings.TrimRight(word, "0123456789")
		n, err := strconv.Atoi(word[len(kind):])
		if kind == "single" {
			return Layout{}, fmt.Errorf("parallel: scheme %q: single stands alone", name)
		}
		if !known(kind) {
			return Layout{}, fmt.Errorf("parallel: scheme %q has %q, want single, or dpN, fsdpN, tpN, megatronN, ulyssesN joined by -; hint: %s", name, word, suggest(kind, n))
		}
		if err != nil || n < 2 || n > 1<<16 || word[len(kind)] == '0' {
			return Layout{}, fmt.Errorf("parallel: scheme %q: %s needs 2 ranks or more, got %q; hint: %s2", name, kind, word[len(kind):], kind)
		}
		if err := l.put(kind, n); err != nil {
			return Layout{}, fmt.Errorf("parallel: scheme %q: %w", name, err)
		}
	}
	return l, nil
}

// ParseAxes reads a layout written axis by axis, as in "fsdp=2,tp=4,sp=megatron". sp ulysses goes with cp by itself.
func ParseAxes(text string) (l Layout, err error) {
	axes := map[string]*int{"dp": &l.DP, "fsdp": &l.FSDP, "pp": &l.PP, "cp": &l.CP, "tp": &l.TP}
	for word := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(word, "=")
		axis := axes[name]
		switch {
		case !ok || axis == nil && name != "sp":
			return Layout{}, fmt.Errorf("parallel: %q in %q, want dp=N, fsdp=N, cp=N, tp=N or sp=megatron; hint: tp=2,sp=megatron", word, text)
		case name == "sp" && l.SP != "", axis != nil && *axis != 0:
			return Layout{}, fmt.Errorf("parallel: %s stands twice in %q", name, text)
		case name == "sp":
			l.SP = value
		default:
			if *axis, err = strconv.Atoi(value); err != nil || *axis < 1 || *axis > 1<<16 || value[0] == '0' || value[0] == '+' {
				return Layout{}, fmt.Errorf("parallel: %s is %q, want a number of ranks; hint: %s=2", name, value, name)
			}
		}
	}
	if l.SP == "" && l.CP > 1 {
		l.SP = "ulysses"
	}
	return l, l.fill().check()
}

func known(kind string) bool {
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// put sets the axis that a word names.
func (l *Layout) put(kind string, n int) error {
	axis := map[string]*int{"dp": &l.DP, "fsdp": &l.FSDP, "ulysses": &l.CP, "tp": &l.TP, "megatron": &l.TP}[kind]
	if *axis != 0 {
		return fmt.Errorf("%s stands twice (megatron is a form of tp)", kind)
	}
	*axis = n
	switch {
	case kind == "megatron":
		l.SP = "megatron"
	case kind == "ulysses" && l.SP == "": // beside megatron both sequences are cut, which cp and sp megatron say
		l.SP = "ulysses"
	}
	return nil
}

// suggest is the known word that starts most like kind, with its ranks.
func suggest(kind string, n int) string {
	best, most := "single", 0
	for _, k := range kinds {
		same := 0
		for same < min(len(k), len(kind)) && k[same] == kind[same] {
			same++
		}
		if same > most {
			best, most = k, same
		}
	}
	if best == "single" {
		return best
	}
	return best + strconv.Itoa(max(2, n))
}

// Name is the layout as ParseLayout reads it. A pipeline has no word yet.
func (l Layout) Name() string {
	l = l.fill()
	var words []string
	for i, n := range [...]int{l.DP, l.FSDP, l.CP, l.TP} {
		kind := kinds[i]
		if kind == "tp" && l.SP == "megatron" {
			kind = "megatron"
		}
		if n > 1 {
			words = append(words, kind+strconv.Itoa(n))
		}
	}
	if words == nil {
		return "single"
	}
	return strings.Join(words, "-")
}
