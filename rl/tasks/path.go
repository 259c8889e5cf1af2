package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Path asks for a way through a layered graph from one node to another. Nodes of layer l are named by a letter and a number: a0 … a7, b0 … b7. Edges lead
// from a layer to the next. A prompt is "a3h5:", a completion the nodes after the start: "b1c7d0e2f2g4h5". A step onto a node from which the goal cannot be
// reached loses the rollout for good, which makes the first irrecoverable step exact.
//
// One graph serves all prompts, so that a model learns it, unless Shown: then every prompt has a graph of its own and lists its edges.
type Path struct {
	Seed   uint64
	Layers int // up to 26
	Width  int // nodes of a layer, up to 10
	Degree int // edges out of a node
	Least  int // edges from start to goal, at least; level 0
	Shown  bool

	fixed graph
}

// graph is next[l][i], a bit set of the nodes of layer l+1 that node i of layer l leads to.
type graph [][]uint16

// node is a place in the graph.
type node struct{ layer, i int }

func (n node) String() string { return fmt.Sprintf("%c%d", 'a'+n.layer, n.i) }

// NewPath checks the sizes and draws the graph.
func NewPath(p Path) (*Path, error) {
	switch {
	case p.Layers < 3 || p.Layers > 26 || p.Width < 2 || p.Width > 10:
		return nil, fmt.Errorf("tasks: path: %d layers of %d nodes, want 3 to 26 layers of 2 to 10", p.Layers, p.Width)
	case p.Degree < 1 || p.Degree > p.Width:
		return nil, fmt.Errorf("tasks: path: %d edges out of a node, want 1 to the width, %d", p.Degree, p.Width)
	case p.Least < 1 || p.Least >= p.Layers:
		return nil, fmt.Errorf("tasks: path: at least %d edges from start to goal, want 1 to %d", p.Least, p.Layers-1)
	}
	p.fixed = p.draw(Random(p.Seed, 0, "path graph"))
	return &p, nil
}

func (p *Path) draw(r *rand.Rand) graph {
	g := make(graph, p.Layers-1)
	for l := range g {
		g[l] = make([]uint16, p.Width)
		for i := range g[l] {
			for _, to := range r.Perm(p.Width)[:p.Degree] {
				g[l][i] |= 1 << to
			}
		}
	}
	return g
}

func (p *Path) Name() string { return "path" }

// Levels are the numbers of edges from Least to Layers-1.
func (p *Path) Levels() int { return p.Layers - p.Least }

func (p *Path) Alphabet() (out []string) {
	for l := range p.Layers {
		for i := range p.Width {
			out = append(out, node{l, i}.String())
		}
	}
	out = append(out, ":")
	if p.Shown {
		out = append(out, ">", ";") // "a0>b1b4;"
	}
	return out
}

// Longest counts symbols.
func (p *Path) Longest() (prompt, completion int) {
	prompt = 3
	if p.Shown {
		prompt += (p.Layers - 1) * p.Width * (3 + p.Degree)
	}
	return prompt, p.Layers - 1
}

// Prompt draws a start and a goal that a way joins.
func (p *Path) Prompt(d Draw) Prompt {
	edges := p.Least + d.Level
	return redraw(d, "path", func(r *rand.Rand) Prompt {
		g := p.fixed
		text := ""
		if p.Shown {
			g = p.draw(r)
			text = p.list(g)
		}
		for {
			from := node{r.IntN(p.Layers - edges), r.IntN(p.Width)}
			to := node{from.layer + edges, r.IntN(p.Width)}
			if g.leads(to)[from.layer]>>from.i&1 == 1 {
				text += from.String() + to.String() + ":"
				return Prompt{ID: text, Text: text, Level: d.Level}
			}
		}
	})
}

func (p *Path) list(g graph) string {
	var b strings.Builder
	for l := range g {
		for i, next := range g[l] {
			fmt.Fprintf(&b, "%v>", node{l, i})
			for j := range p.Width {
				if next>>j&1 == 1 {
					b.WriteString(node{l + 1, j}.String())
				}
			}
			b.WriteByte(';')
		}
	}
	return b.String()
}

// leads is, a layer, the bit set of nodes from which to can be reached.
func (g graph) leads(to node) []uint16 {
	out := make([]uint16, to.layer+1)
	out[to.layer] = 1 << to.i
	for l := to.layer - 1; l >= 0; l-- {
		for i, next := range g[l] {
			if next&out[l+1] != 0 {
				out[l] |= 1 << i
			}
		}
	}
	return out
}

// problem is what a prompt says.
type problem struct {
	g        graph
	from, to node
}

func (p *Path) parse(text string) (problem, error) {
	q := problem{g: p.fixed}
	bad := fmt.Errorf("tasks: path: %q is no prompt of a graph of %d layers of %d nodes; hint: a0%v:", text, p.Layers, p.Width, node{p.Layers - 1, 0})
	lines := strings.Split(text, ";")
	if p.Shown != (len(lines) > 1) {
		return q, bad
	}
	if p.Shown {
		q.g = make(graph, p.Layers-1)
		for l := range q.g {
			q.g[l] = make([]uint16, p.Width)
		}
	}
	for _, line := range lines[:len(lines)-1] {
		nodes, ok := p.nodes(strings.Replace(line, ">", "", 1))
		if !ok || len(nodes) == 0 || nodes[0].layer >= p.Layers-1 {
			return q, bad
		}
		for _, n := range nodes[1:] {
			if n.layer != nodes[0].layer+1 {
				return q, bad
			}
			q.g[nodes[0].layer][nodes[0].i] |= 1 << n.i
		}
	}
	ends, colon := strings.CutSuffix(lines[len(lines)-1], ":")
	nodes, ok := p.nodes(ends)
	if !ok || !colon || len(nodes) != 2 || nodes[0].layer >= nodes[1].layer {
		return q, bad
	}
	q.from, q.to = nodes[0], nodes[1]
	return q, nil
}

// nodes reads names, two bytes each. ok is false if something else stands after those returned.
func (p *Path) nodes(text string) (out []node, ok bool) {
	for ; len(text) >= 2; text = text[2:] {
		n := node{int(text[0]) - 'a', int(text[1]) - '0'}
		if n.layer < 0 || n.layer >= p.Layers || n.i < 0 || n.i >= p.Width {
			return out, false
		}
		out = append(out, n)
	}
	return out, text == ""
}

// Verify walks along the completion while the goal can be reached.
func (p *Path) Verify(_ context.Context, prompt Prompt, completion string) (Verdict, error) {
	q, err := p.parse(prompt.Text)
	if err != nil {
		return Verdict{}, err
	}
	good, at := q.g.leads(q.to), q.from
	nodes, clean := p.nodes(completion)
	for k, n := range nodes {
		if n.layer != at.layer+1 || n.layer > q.to.layer || q.g[at.layer][at.i]&good[n.layer]>>n.i&1 == 0 {
			return Verdict{Lost: 2*k + p.shared(q, good, at, completion[2*k:])}, nil
		}
		at = n
	}
	switch rest := completion[2*len(nodes):]; {
	case at == q.to && clean && rest == "":
		return Verdict{Reward: 1, Lost: Kept}, nil
	case at == q.to:
		return Verdict{Lost: 2 * len(nodes)}, nil
	default:
		return Verdict{Lost: 2*len(nodes) + p.shared(q, good, at, rest)}, nil
	}
}

// shared is how many bytes of text the name of a good next node shares: a wrong number in the right layer is lost at its second byte.
func (p *Path) shared(q problem, good []uint16, at node, text string) (n int) {
	if at.layer >= q.to.layer {
		return 0
	}
	for i := range p.Width {
		if q.g[at.layer][at.i]&good[at.layer+1]>>i&1 == 1 {
			n = max(n, common(node{at.layer + 1, i}.String(), text))
		}
	}
	return n
}

// Demonstrate takes a random edge among those that keep the goal within reach; with probability err, and where there is none, among all.
func (p *Path) Demonstrate(prompt Prompt, err float64, r *rand.Rand) string {
	q, bad := p.parse(prompt.Text)
	if bad != nil {
		return ""
	}
	var b strings.Builder
	good := q.g.leads(q.to)
	for at := q.from; at.layer < q.to.layer; {
		all := q.g[at.layer][at.i]
		if keep := all & good[at.layer+1]; keep != 0 && r.Float64() >= err {
			all = keep
		}
		var list []int
		for i := range p.Width {
			if all>>i&1 == 1 {
				list = append(list, i)
			}
		}
		if len(list) == 0 { // a graph given in a prompt may have dead ends
			break
		}
		at = node{at.layer + 1, list[r.IntN(len(list))]}
		b.WriteString(at.String())
	}
	return b.String()
}

// Successes are all ways to the goal that begin with prefix.
func (p *Path) Successes(prompt Prompt, prefix string) []string {
	q, err := p.parse(prompt.Text)
	if err != nil {
		return nil
	}
	good, out := q.g.leads(q.to), []string{""}
	at := []node{q.from}
	for l := q.from.layer; l < q.to.layer; l++ {
		var longer []string
		var ends []node
		for k, way := range out {
			for i := range p.Width {
				n := node{l + 1, i}
				if next := way + n.String(); q.g[l][at[k].i]&good[l+1]>>i&1 == 1 && common(next, prefix) == min(len(next), len(prefix)) {
					longer, ends = append(longer, next), append(ends, n)
				}
			}
		}
		out, at = longer, ends
	}
	slices.Sort(out)
	return startingWith(out, prefix)
}
