package gemm

// Family spans what Config allows, each value of each field in some member: what the checks run, on the emulator and on the device.
func Family() []Config {
	return parseAll([]string{
		"128x256x64-w2-c2x1-s4-g8",
		"128x256x64-w2-c1x2-s4-g8-serpentine",
		"128x256x64-w2-c2x2-s4-g4-l2256",
		"128x256x64-w2-c4x1-s4-g4-waits",
		"128x256x32-w2-c2x1-s8-g8",
		"128x192x64-w2-c2x1-s2-g1-serpentine",
		"128x128x128-w2-c1x2-s3-g2-invites",
		"64x64x64-w1-c1x1-s6-g0-onetile-l2none",
		"64x128x64-w1-c2x2-s4-g4-onetile-invites",
		"64x128x64-w1-c4x2-s4-g4-l264",
		"64x128x128-w1-c2x1-s3-g2",
		"128x128x64-w1-c2x1-s5-g4",
		"64x256x64-w2-c4x1-s4-g2-pingpong",
		"128x128x64-w2-c2x1-s6-g4-pingpong",
		"128x192x64-w2-c2x1-s4-g4-pingpong-serpentine",
		"192x192x64-w3-c2x1-s3-g4-b1",
		"256x192x64-w2-c1x2-s3-g4",
		"256x128x64-w2-c1x2-s4-g4",
		// layouts and types
		"128x256x64-w2-c2x1-s3-g8-tb",
		"128x256x64-w2-c2x1-s3-g8-ta",
		"128x256x64-w2-c1x2-s3-g8-ta-tb",
		"256x128x64-w2-c2x1-s3-g4-ta-tb-tof32-add",
		"128x128x32-w2-c2x1-s6-g4-ta-tb",
		"128x128x128-w1-c1x2-s3-g2-ta-tof32",
		"128x128x64-w2-c2x1-s4-g2-pingpong-ta-tof32",
		"128x64x64-w2-c1x1-s4-g2-pingpong-tb-f16",
		"64x192x64-w1-c1x1-s3-g2-tb-f16-tof32-add",
		"64x64x64-w1-c2x1-s4-g0-invites-f16-tobf16",
		"128x128x64-w2-c2x2-s3-g2-tof16",
		"128x128x64-w2-c1x1-s3-g4-b4",
		"128x192x64-w2-c2x1-s3-g4-b3",
		"128x64x64-w1-c1x1-s3-g4-b4",
		"128x256x128-w2-c2x1-s3-g8-e4m3",
		"128x128x128-w2-c1x2-s4-g4-e5m2-tof32-pingpong",
		"128x128x256-w2-c1x1-s2-g4-e4m3-tof16-alpha",
		"64x128x64-w1-c1x1-s4-g4-e5m2",
		"128x128x128-w2-c1x1-s4-g8-e4m3-blocks",
		"192x128x128-w3-c1x1-s4-g8-b1-e4m3-blocks",
		"64x64x128-w1-c2x1-s3-g2-e5m2-tof32-blocks-alpha-bias",
		"64x128x128-w2-c1x2-s4-g2-pingpong-e4m3-blocks",
		"128x128x32-w2-c2x1-s4-g4-tf32",
		"64x64x64-w1-c1x1-s3-g0-tf32-tobf16",
		"128x128x64-w2-c1x1-s4-g4-keepa-zigzag",
		"128x256x64-w2-c2x1-s3-g4-peek",
		"128x128x64-w2-c1x1-s4-g4-dynamic",
		"128x128x64-w2-c2x1-s4-g0-dynamic-table",
		"64x128x64-w2-c2x2-s4-g2-pingpong-dynamic-tb",
		"128x128x64-w2-c1x2-s4-g0-table",
		// groups
		"128x256x64-w2-c1x1-s3-g4-grouped",
		"128x128x64-w2-c1x2-s4-g2-tb-grouped",
		"128x128x64-w2-c2x1-s4-g4-pingpong-tof32-grouped",
		"128x128x64-w2-c1x1-s4-g4-ta-tb-groupedk",
		"128x256x64-w2-c2x1-s3-g2-ta-tb-tof32-add-groupedk",
		"128x192x64-w2-c1x1-s3-g4-pingpong-ta-tb-tof32-groupedk",
		// tiles cut along K
		"128x128x64-w2-c1x1-s4-g4-streamk",
		"128x256x64-w2-c2x1-s3-g2-streamk",
		"256x192x64-w2-c1x1-s3-g4-streamk",
		"128x128x64-w2-c2x1-s4-g2-streamk-pingpong-ta-tb",
		"64x128x64-w1-c1x1-s4-g4-streamk-ta-tb-tof32-add",
		"128x192x64-w2-c1x2-s3-g2-streamk-invites-tb-tof32",
		"128x256x64-w2-c1x1-s3-g4-streamk-alpha-bias-swiglu",
		// epilogues
		"128x256x64-w2-c2x1-s3-g8-residual",
		"128x256x64-w2-c1x1-s3-g8-b4-alpha-bias-residual",
		"128x192x64-w2-c1x1-s3-g4-pingpong-residual",
		"64x128x64-w1-c1x1-s4-g4-b1-tof32-residual-amax",
		"128x256x64-w2-c1x2-s3-g8-rows-columns-bias",
		"128x128x64-w2-c1x1-s4-g4-alpha-gelu-keep",
		"128x192x64-w2-c2x1-s3-g4-alpha-rows-gelu-residual",
		"128x256x64-w2-c1x1-s3-g8-alpha-swiglu",
		"128x256x64-w2-c2x1-s3-g8-b3-alpha-bias-swiglu-keep",
		"128x128x64-w1-c2x1-s4-g4-tb-alpha-swiglu-amax",
		"128x128x64-w2-c1x1-s4-g4-pingpong-tb-alpha-dgelu",
		"128x256x64-w2-c1x1-s3-g8-tb-b4-alpha-dswiglu",
		"64x64x64-w1-c1x1-s4-g0-invites-alpha-rows-dswiglu-amax",
		"128x128x64-w2-c1x1-s4-g4-f16-alpha-bias-gelu",
	})
}

// parseAll reads names that stand in this package.
func parseAll(names []string) []Config {
	all := make([]Config, len(names))
	for i, n := range names {
		c, err := ParseConfig(n)
		if err != nil {
			panic(err) // a name above is wrong
		}
		all[i] = c
	}
	return all
}
