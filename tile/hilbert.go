package tile

// hilbert visits each cell of the rectangle spanned from corner by major and minor (axis-parallel vectors) once, ending at the far end of major. A
// long rectangle is two walks one behind the other; a squarish one goes up the first half of major, along the whole of it, and back down: every
// step goes to a neighbour, save one diagonal where an odd length meets an even one.
func hilbert(corner, major, minor Pos, visit func(Pos)) {
	long, short := length(major), length(minor)
	stepMajor, stepMinor := major.over(long), minor.over(short)
	switch {
	case short == 1:
		for i := range long {
			visit(corner.plus(stepMajor.times(i)))
		}
		return
	case long == 1:
		for i := range short {
			visit(corner.plus(stepMinor.times(i)))
		}
		return
	}
	half := stepMajor.times(even(long/2, long))
	if 2*long > 3*short {
		hilbert(corner, half, minor, visit)
		hilbert(corner.plus(half), major.minus(half), minor, visit)
		return
	}
	half = stepMajor.times(long / 2)
	rise := stepMinor.times(even(short/2, short))
	hilbert(corner, rise, half, visit)
	hilbert(corner.plus(rise), major, minor.minus(rise), visit)
	end := corner.plus(major).minus(stepMajor).plus(rise).minus(stepMinor)
	hilbert(end, rise.times(-1), major.minus(half).times(-1), visit)
}

// even rounds half of a length above 2 up to an even number, so that the pieces end where the next ones start.
func even(half, of int) int {
	if half%2 == 1 && of > 2 {
		return half + 1
	}
	return half
}

func length(p Pos) int        { return max(p.M, -p.M) + max(p.N, -p.N) }
func (p Pos) plus(q Pos) Pos  { return Pos{p.M + q.M, p.N + q.N} }
func (p Pos) minus(q Pos) Pos { return Pos{p.M - q.M, p.N - q.N} }
func (p Pos) times(n int) Pos { return Pos{p.M * n, p.N * n} }
func (p Pos) over(n int) Pos  { return Pos{p.M / n, p.N / n} }
