package gemm

// Candidates are the configurations that a search tries where nobody names others: for small products, which do not fill the device with large tiles, and for large ones.
func Candidates(small bool) []Config {
	names := large
	if small {
		names = little
	}
	return parseAll(names)
}

var large = []string{
	// what 128×256 with three stages changes one thing at a time
	"128x256x64-w2-c2x1-s3-g8", "128x256x64-w2-c2x1-s4-g8", "128x256x64-w2-c2x1-s3-g8-serpentine", "128x256x64-w2-c2x1-s3-g8-b4", "128x256x64-w2-c2x1-s3-g8-serpentine-b4",
	"128x256x64-w2-c2x1-s3-g4", "128x256x64-w2-c2x1-s3-g6", "128x256x64-w2-c2x1-s3-g12", "128x256x64-w2-c2x1-s3-g16", "128x256x64-w2-c2x1-s3-g8-l2256", "128x256x64-w2-c2x1-s3-g8-onetile-b4",
	"128x256x128-w2-c2x1-s2-g8-b1", "128x256x64-w2-c1x2-s3-g16-b4",
	// alone: no barrier between CTAs
	"128x256x64-w2-c1x1-s4-g16", "128x256x64-w2-c1x1-s3-g16-b4", "128x256x64-w2-c1x1-s3-g16-onetile-b4", "128x128x64-w2-c1x1-s6-g16-pingpong",
	// fewer bytes a product
	"256x192x64-w2-c2x1-s3-g4", "256x192x64-w2-c1x2-s3-g8", "256x192x64-w2-c1x1-s3-g8", "192x192x64-w3-c2x1-s3-g6",
	"256x128x64-w2-c1x2-s4-g8", "256x128x64-w2-c1x2-s3-g8-b4", "256x128x64-w2-c1x1-s4-g8",
	// the store of one tile under the products of the next
	"128x192x64-w2-c2x1-s4-g8-pingpong", "128x192x64-w2-c1x1-s4-g16-pingpong", "128x192x64-w2-c1x2-s4-g16-pingpong", "128x128x64-w2-c2x1-s6-g8-pingpong",
}

var little = []string{
	"64x64x64-w1-c1x1-s8-g0-invites", "64x64x64-w1-c1x1-s8-g0-waits", "64x64x64-w1-c1x1-s6-g0-invites", "64x64x64-w1-c1x1-s6-g0-onetile-invites", "64x64x64-w1-c1x1-s4-g0-invites",
	"64x64x128-w1-c1x1-s4-g0-invites", "64x64x128-w1-c1x1-s3-g0-invites", "64x64x64-w1-c2x1-s6-g0-invites", "64x64x64-w1-c2x2-s6-g0-invites", "64x64x64-w1-c1x2-s6-g0-invites",
	"64x128x64-w1-c1x1-s8-g4-invites", "64x128x64-w1-c1x1-s8-g4-waits", "64x128x64-w1-c1x1-s8-g4", "64x128x64-w1-c1x1-s6-g4-invites", "64x128x64-w1-c1x1-s4-g4-invites", "64x128x64-w1-c1x1-s4-g4-onetile-invites",
	"64x128x64-w1-c2x1-s8-g4-invites", "64x128x64-w1-c2x1-s8-g4-waits", "64x128x64-w1-c2x1-s6-g4-invites", "64x128x64-w1-c2x1-s4-g4-invites", "64x128x64-w1-c1x2-s4-g4-invites",
	"64x128x128-w1-c1x1-s4-g4-invites", "64x128x128-w1-c2x1-s4-g4-invites", "64x128x128-w1-c1x1-s2-g4-invites",
	"128x64x64-w2-c1x1-s8-g4-invites", "128x64x64-w2-c1x1-s4-g4-invites", "128x64x64-w2-c1x2-s5-g4-invites", "128x64x64-w1-c1x1-s8-g4-invites",
	"128x128x64-w2-c1x1-s6-g4-invites", "128x128x64-w2-c2x1-s4-g4-invites-b4", "64x256x64-w1-c1x1-s4-g4-invites",
}
