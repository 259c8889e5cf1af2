package tasks

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

func all(t testing.TB) []Task {
	t.Helper()
	path, err := NewPath(Path{Seed: 3, Layers: 6, Width: 5, Degree: 2, Least: 2})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := NewPath(Path{Seed: 3, Layers: 4, Width: 4, Degree: 2, Least: 2, Shown: true})
	if err != nil {
		t.Fatal(err)
	}
	return []Task{path, shown, Addition{3}, Multiplication{2, 2}, Countdown{12}}
}

func label(t Task) string {
	if p, ok := t.(*Path); ok && p.Shown {
		return "path shown"
	}
	return t.Name()
}

// Lost is by definition the length of the longest prefix that a completion shares with any success, and a success is a completion that enumeration lists.
// The completions tried are successes, successes with one symbol replaced, removed or added, and demonstrations that err.
func TestVerdictsAreWhatEnumerationSays(t *testing.T) {
	for _, task := range all(t) {
		t.Run(label(task), func(t *testing.T) {
			alphabet := task.Alphabet()
			kept, lost := 0, 0
			for i := range uint64(24) {
				p := task.Prompt(Draw{Seed: 7, Index: i, Level: int(i) % min(task.Levels(), 2)})
				good := task.(Enumerator).Successes(p, "")
				if len(good) == 0 {
					t.Fatalf("%q has no success", p.Text)
				}
				r := Random(1, i, "test")
				tries := []string{"", good[0], good[len(good)-1] + alphabet[0]}
				for range 6 {
					s := good[r.IntN(len(good))]
					at, x := r.IntN(len(s)), alphabet[r.IntN(len(alphabet))]
					tries = append(tries, s, s[:at], s[:at]+x+s[at+1:], s[:at]+x+s[at:], task.(Demonstrator).Demonstrate(p, 0.5, r))
				}
				for _, text := range tries {
					v, err := task.Verify(context.Background(), p, text)
					if err != nil {
						t.Fatal(err)
					}
					want := Verdict{}
					for _, s := range good {
						if s == text {
							want = Verdict{1, Kept}
							break
						}
						want.Lost = max(want.Lost, common(s, text))
					}
					if v != want {
						t.Errorf("%q with %q: %+v, want %+v", p.Text, text, v, want)
					}
					if v.Lost == Kept {
						kept++
					} else {
						lost++
					}
				}
			}
			if kept < 24 || lost < 24 {
				t.Errorf("%d kept, %d lost: too few to say anything", kept, lost)
			}
		})
	}
}

// Successes with a prefix are those that begin with it, and those alone.
func TestSuccessesFromAPrefix(t *testing.T) {
	for _, task := range all(t) {
		p := task.Prompt(Draw{Seed: 2, Index: 5})
		every := task.(Enumerator).Successes(p, "")
		for _, s := range every {
			for at := range s {
				if got, want := task.(Enumerator).Successes(p, s[:at]), startingWith(every, s[:at]); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s: %q: %v, want %v", label(task), s[:at], got, want)
				}
			}
		}
	}
}

// A demonstration without errors succeeds; everything fits the codec and the lengths the task states; held-out problems are other problems.
func TestPromptsAndDemonstrationsAreWhatTheTaskStates(t *testing.T) {
	for _, task := range all(t) {
		codec, err := NewSymbols(task.Alphabet())
		if err != nil {
			t.Fatal(err)
		}
		longestPrompt, longest := task.Longest()
		kind := map[string]bool{}
		for i := range uint64(200) {
			d := Draw{Seed: 9, Index: i, Level: int(i) % task.Levels(), HeldOut: i%3 == 0}
			p := task.Prompt(d)
			if again := task.Prompt(d); again != p {
				t.Fatalf("%s: the same draw gave %+v and %+v", label(task), p, again)
			}
			if before, seen := kind[p.ID]; seen && before != d.HeldOut {
				t.Fatalf("%s: %q is held out and is not", label(task), p.ID)
			}
			kind[p.ID] = d.HeldOut
			clean := task.(Demonstrator).Demonstrate(p, 0, Random(4, i, "test"))
			if v, err := task.Verify(context.Background(), p, clean); err != nil || v.Reward != 1 {
				t.Errorf("%s: %q: demonstration %q: %+v %v", label(task), p.Text, clean, v, err)
			}
			for text, most := range map[string]int{p.Text: longestPrompt, clean: longest, task.(Demonstrator).Demonstrate(p, 1, Random(4, i, "test")): longest} {
				ids, err := codec.Encode(text)
				if err != nil || len(ids) > most {
					t.Errorf("%s: %q: %d symbols, at most %d are stated; %v", label(task), text, len(ids), most, err)
				}
				if back, err := codec.Decode(ids); back != text || err != nil {
					t.Errorf("%s: %q came back as %q, %v", label(task), text, back, err)
				}
			}
		}
	}
}

// The chance that a demonstration succeeds follows from err by dynamic programming over the graph; a thousand demonstrations must agree within four standard
// deviations, √(p(1−p)/n) each.
func TestDemonstrationsErrAtTheStatedRate(t *testing.T) {
	task := all(t)[0].(*Path)
	for _, rate := range []float64{0.2, 0.5, 1} {
		sum, variance, succeeded := 0.0, 0.0, 0.0
		const n = 1000
		for i := range uint64(n) {
			p := task.Prompt(Draw{Seed: 1, Index: i, Level: int(i) % task.Levels()})
			chance := task.chance(t, p, rate)
			sum, variance = sum+chance, variance+chance*(1-chance)
			v, _ := task.Verify(context.Background(), p, task.Demonstrate(p, rate, Random(5, i, "rate")))
			succeeded += v.Reward
		}
		if math.Abs(succeeded-sum) > 4*math.Sqrt(variance) || sum == n {
			t.Errorf("err %g: %g of %d succeeded, expected %.1f ± %.1f", rate, succeeded, n, sum, math.Sqrt(variance))
		}
	}
}

// chance is the value of the demonstrating policy: from a node, (1−err)·mean over good edges + err·mean over all edges.
func (p *Path) chance(t *testing.T, prompt Prompt, rate float64) float64 {
	q, err := p.parse(prompt.Text)
	if err != nil {
		t.Fatal(err)
	}
	good := q.g.leads(q.to)
	var value func(n node) float64
	value = func(n node) float64 {
		if n.layer == q.to.layer {
			if n == q.to {
				return 1
			}
			return 0
		}
		sumGood, nGood, sumAll, nAll := 0.0, 0.0, 0.0, 0.0
		for i := range p.Width {
			if q.g[n.layer][n.i]>>i&1 == 0 {
				continue
			}
			v := value(node{n.layer + 1, i})
			sumAll, nAll = sumAll+v, nAll+1
			if good[n.layer+1]>>i&1 == 1 {
				sumGood, nGood = sumGood+v, nGood+1
			}
		}
		if nGood == 0 {
			return 0
		}
		return (1-rate)*sumGood/nGood + rate*sumAll/nAll
	}
	return value(q.from)
}

func TestWorkedExamples(t *testing.T) {
	for _, x := range []struct {
		task    Task
		prompt  string
		right   string
		wrong   string
		lostAt  int
		comment string
	}{
		{Addition{2}, "57+68=", "521", "531", 1, "57+68 = 125"},
		{Multiplication{2, 2}, "34*27=", "832+086=819", "832+068=819", 5, "238 + 680 = 918"},
		{Multiplication{2, 2}, "34*20=", "0+086=086", "0+086=08", 8, "0 + 680 = 680"},
		{Countdown{50}, "3,7,25:46=", "3*7=21,21+25=46;", "3+7=10,10+25=35;", 1, "3·7 + 25"},
		{Countdown{50}, "3,7,25:46=", "25+21=46;", "25+21=46;", 3, "21 is not there yet; 25+… may not come first"},
	} {
		v, err := x.task.Verify(context.Background(), Prompt{Text: x.prompt}, x.wrong)
		if err != nil {
			t.Fatal(err)
		}
		if x.right != x.wrong {
			if r, err := x.task.Verify(context.Background(), Prompt{Text: x.prompt}, x.right); err != nil || r.Reward != 1 {
				t.Errorf("%s%s: %+v %v", x.prompt, x.right, r, err)
			}
			if v.Lost != x.lostAt {
				t.Errorf("%s%s (%s): lost at %d, want %d", x.prompt, x.wrong, x.comment, v.Lost, x.lostAt)
			}
		}
		if v.Reward != 0 {
			t.Errorf("%s%s: %+v", x.prompt, x.wrong, v)
		}
	}
}

func TestForeignPromptsAreErrors(t *testing.T) {
	for _, task := range all(t) {
		for _, text := range []string{"", ":", "=", "a", "zz:", "1+=", "99999999999999999999+1=", "1,2:3", strings.Repeat("9,", 50) + ":1=", "a0>b1;a0a0:", "f0a0:"} {
			if _, err := task.Verify(context.Background(), Prompt{Text: text}, "1"); err == nil {
				t.Errorf("%s takes %q for a prompt", label(task), text)
			}
		}
	}
}

func TestAlphabetsThatCannotBeReadBackAreRefused(t *testing.T) {
	for _, bad := range [][]string{{"a", "a"}, {""}} {
		if _, err := NewSymbols(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	s, _ := NewSymbols([]string{"a", "ab", "b"})
	if ids, err := s.Encode("abab"); err != nil || fmt.Sprint(ids) != "[2 2]" {
		t.Errorf("%v %v, want the longest symbols", ids, err)
	}
	if _, err := s.Encode("abc"); err == nil || !strings.Contains(err.Error(), "byte 2") {
		t.Errorf("%v", err)
	}
	if _, err := s.Decode([]int32{1, 9}); err == nil {
		t.Error("id 9 has a symbol")
	}
	if text, err := s.Decode([]int32{1, 3, 0, 9}); err != nil || text != "ab" {
		t.Errorf("%q %v: what follows the end is not text", text, err)
	}
}

// Completions and prompts of any bytes never panic, and a verdict is well formed.
func FuzzVerify(f *testing.F) {
	f.Add("a0f1:", "b1c2")
	f.Add("34*27=", "832+086=819")
	f.Add("3,7,25:46=", "3*7=21,21+25=46;")
	f.Add("a0>b1b2;a0d1:", "b1")
	list := all(f)
	f.Fuzz(func(t *testing.T, prompt, completion string) {
		for _, task := range list {
			v, err := task.Verify(context.Background(), Prompt{Text: prompt}, completion)
			if err == nil && (v.Reward != 0 && v.Reward != 1 || (v.Reward == 1) != (v.Lost == Kept) || v.Lost > len(completion)) {
				t.Errorf("%s: %+v", task.Name(), v)
			}
		}
	})
}

// The first whole number after the last "=" is the answer, or the first of all.
func TestArithmeticReadsTheAnswer(t *testing.T) {
	task := Arithmetic{Digits: 2}
	p := Prompt{Text: "What is 57 + 68? Reply with the number alone."}
	for text, want := range map[string]float64{"125": 1, "125.": 1, "The sum is 125, not 126": 1, "57 + 68 = 125": 1, "57 + 68 = 125 = 124": 0, "57 + 68 =": 0, "126": 0, "1250": 0, "0125": 0, "none": 0, "": 0} {
		if v, err := task.Verify(context.Background(), p, text); err != nil || v != (Verdict{want, Kept}) {
			t.Errorf("%q: %+v %v, want %g", text, v, err, want)
		}
	}
	for _, bad := range []string{"", "What is 57?", "What is -1 + 2? Reply with the number alone.", "What is 99999999999999999999 + 1? Reply with the number alone."} {
		if _, err := task.Verify(context.Background(), Prompt{Text: bad}, "1"); err == nil {
			t.Errorf("%q is a prompt", bad)
		}
	}
	for level := range task.Levels() {
		for i := range uint64(50) {
			q := task.Prompt(Draw{Seed: 1, Index: i, Level: level, HeldOut: i%2 == 0})
			var a, b int
			if n, _ := fmt.Sscanf(q.Text, question, &a, &b); n != 2 || len(fmt.Sprint(a))+len(fmt.Sprint(b)) != level+2 || heldOut(q.Text) != (i%2 == 0) {
				t.Errorf("level %d: %q", level, q.Text)
			}
		}
	}
}
