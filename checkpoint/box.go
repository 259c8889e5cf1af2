package checkpoint

import (
	"fmt"
	"slices"
)

// Box is a part of a global tensor: [Lo, Hi) in every dim. A box without dims is one number.
type Box struct{ Lo, Hi []int }

// Whole is the box of a whole tensor.
func Whole(shape []int) Box { return Box{make([]int, len(shape)), slices.Clone(shape)} }

// Len is the number of elements.
func (b Box) Len() int {
	n := 1
	for i := range b.Lo {
		n *= max(0, b.Hi[i]-b.Lo[i])
	}
	return n
}

// Meet is the part that two boxes share; it may be empty.
func (b Box) Meet(o Box) Box {
	m := Box{make([]int, len(b.Lo)), make([]int, len(b.Lo))}
	for i := range b.Lo {
		m.Lo[i], m.Hi[i] = max(b.Lo[i], o.Lo[i]), min(b.Hi[i], o.Hi[i])
	}
	return m
}

// meets tells whether two boxes share an element.
func (b Box) meets(o Box) bool {
	for i := range b.Lo {
		if max(b.Lo[i], o.Lo[i]) >= min(b.Hi[i], o.Hi[i]) {
			return false
		}
	}
	return true
}

// check says what is wrong with a box as a part of a tensor; the box may end beyond the tensor, in padding.
func (b Box) check(dims int) error {
	if len(b.Lo) != dims || len(b.Hi) != dims {
		return fmt.Errorf("box %v to %v has not %d dimensions", b.Lo, b.Hi, dims)
	}
	for i := range b.Lo {
		if b.Lo[i] < 0 || b.Hi[i] < b.Lo[i] || b.Hi[i] > 1<<40 {
			return fmt.Errorf("box %v to %v is no box", b.Lo, b.Hi)
		}
	}
	return nil
}

// Range cuts elements [from, to) of the box, counted row-major, into boxes: a broken first row, whole rows, a broken last row, and so in every dim. At most
// 2·dims - 1 of them, in order, so that their elements one after the other are the range.
func (b Box) Range(from, to int) []Box {
	if from >= to {
		return nil
	}
	if len(b.Lo) == 0 {
		return []Box{{}}
	}
	row := Box{b.Lo[1:], b.Hi[1:]}
	n := row.Len()
	var out []Box
	put := func(lo, hi int, inner []Box) {
		for _, x := range inner {
			out = append(out, Box{append([]int{lo}, x.Lo...), append([]int{hi}, x.Hi...)})
		}
	}
	first, last := from/n, to/n // rows the range starts and ends in
	if first == last {
		put(b.Lo[0]+first, b.Lo[0]+first+1, row.Range(from%n, to%n))
		return out
	}
	if from%n != 0 {
		put(b.Lo[0]+first, b.Lo[0]+first+1, row.Range(from%n, n))
		first++
	}
	if first < last {
		put(b.Lo[0]+first, b.Lo[0]+last, []Box{row})
	}
	put(b.Lo[0]+last, b.Lo[0]+last+1, row.Range(0, to%n))
	return out
}

// runs calls f for every stretch of elements of part that lies without a break in both a and b, which hold part: its length and where it starts in
// a and in b, counted row-major. The stretches come in order.
func runs(part, a, b Box, f func(n, inA, inB int) error) error {
	if part.Len() == 0 {
		return nil
	}
	k := len(part.Lo) // dims from k on are one stretch: whole in a and b, but for dim k itself
	n := 1
	for k > 0 {
		k--
		n *= part.Hi[k] - part.Lo[k]
		if same := func(x Box) bool { return x.Lo[k] == part.Lo[k] && x.Hi[k] == part.Hi[k] }; !same(a) || !same(b) {
			break
		}
	}
	at := slices.Clone(part.Lo)
	for {
		if err := f(n, a.index(at), b.index(at)); err != nil {
			return err
		}
		i := k - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < part.Hi[i] {
				break
			}
			at[i] = part.Lo[i]
		}
		if i < 0 {
			return nil
		}
	}
}

// index is where the element at global coordinates stands in the box, counted row-major.
func (b Box) index(at []int) int {
	n := 0
	for i := range at {
		n = n*(b.Hi[i]-b.Lo[i]) + at[i] - b.Lo[i]
	}
	return n
}
