// Command gen writes the z-files of package ptx from the instruction table. Run it as go generate ./ptx.
package main

import (
	"fmt"
	"os"

	"heddle/ptx/internal/isa"
)

func main() {
	files, err := isa.Generate()
	if err == nil {
		for name, src := range files {
			if err = os.WriteFile(name, src, 0o644); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
