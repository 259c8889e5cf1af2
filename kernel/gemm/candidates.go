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
	// what the default changes one thing at a time
	"128x256x64-w2-c2x1-s4-g8", "128x256x64-w2-c2x1-s4-g8-serpentine", "128x256x64-w2-c2x1-s4-g8-l2256", "128x256x64-w2-c2x1-s4-g8-l2none", "128x256x64-w2-c2x1-s4-g8-invites",
	"128x256x64-w2-c2x1-s4-g4", "128x256x64-w2-c2x1-s4-g16", "128x256x64-w2-c2x1-s3-g8", "128x256x64-w2-c1x1-s4-g16", "128x256x64-w2-c2x1-s4-g8-onetile",
	"128x256x32-w2-c2x1-s8-g8",
	// more multicast: a quarter fewer bytes out of L2
	"128x256x64-w2-c1x2-s4-g16", "128x256x64-w2-c2x2-s4-g4", "128x256x64-w2-c2x2-s4-g8", "128x256x64-w2-c2x2-s4-g8-serpentine", "128x256x64-w2-c4x1-s4-g4", "128x256x64-w2-c4x1-s4-g2",
	"128x256x64-w2-c1x4-s4-g16", "128x256x64-w2-c4x2-s4-g4", "128x256x32-w2-c2x2-s8-g8", "128x256x32-w2-c4x1-s8-g4",
	// other tiles
	"256x128x64-w2-c2x1-s4-g4", "256x128x64-w2-c1x2-s4-g8", "256x128x64-w2-c2x2-s4-g4", "128x192x64-w2-c2x1-s4-g8", "192x192x64-w3-c2x1-s3-g6", "128x128x64-w2-c2x1-s6-g8",
	// the store of one tile under the products of the next
	"128x128x64-w2-c2x1-s6-g8-pingpong", "128x128x64-w2-c2x2-s6-g8-pingpong", "128x192x64-w2-c2x1-s4-g8-pingpong", "128x192x64-w2-c2x2-s4-g4-pingpong", "64x256x64-w2-c4x1-s4-g8-pingpong",
}

var little = []string{
	"64x64x64-w1-c1x1-s8-g0", "64x64x64-w1-c1x1-s8-g0-invites", "64x64x64-w1-c1x1-s6-g0-onetile-invites", "64x64x64-w1-c2x1-s6-g0-invites", "64x64x64-w1-c2x2-s6-g0-invites",
	"64x64x128-w1-c1x1-s4-g0-invites", "64x64x128-w1-c2x2-s3-g0-invites",
	"64x128x64-w1-c1x1-s4-g0", "64x128x64-w1-c1x1-s4-g0-invites", "64x128x64-w1-c1x1-s8-g0-invites", "64x128x64-w1-c2x1-s4-g4", "64x128x64-w1-c2x1-s4-g4-waits", "64x128x64-w1-c2x1-s4-g4-invites",
	"64x128x64-w1-c2x1-s8-g4-invites", "64x128x64-w1-c2x2-s4-g4-invites", "64x128x64-w1-c2x2-s8-g4-invites", "64x128x64-w1-c4x1-s4-g4-invites", "64x128x64-w1-c4x2-s4-g4-invites", "64x128x64-w1-c4x2-s8-g4-invites",
	"64x128x128-w1-c2x1-s4-g4-invites", "64x128x128-w1-c4x1-s4-g4-invites", "64x128x128-w1-c2x2-s2-g4-invites", "64x128x128-w1-c4x2-s2-g4-invites",
	"64x128x64-w1-c2x2-s4-g4-onetile-invites", "128x64x64-w2-c1x2-s5-g4-invites", "128x64x64-w2-c2x2-s5-g4-invites", "128x64x64-w1-c2x2-s4-g4-invites",
	"128x128x64-w2-c1x1-s6-g4-invites", "128x128x64-w2-c2x1-s6-g4-invites", "128x128x64-w1-c2x1-s5-g4-invites", "128x128x128-w2-c2x1-s3-g4-invites",
	"64x256x64-w1-c2x1-s4-g4-invites",
}
