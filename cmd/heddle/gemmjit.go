package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"heddle/bench"
	"heddle/cuda"
	"heddle/internal/cli"
	"heddle/kernel/all"
	"heddle/ptx"
)

type gemmJITCmd struct {
	Threads int    `default:"8" help:"Threads that compile."`
	Match   string `help:"Only kernels whose names this regular expression finds." placeholder:"REGEXP"`
	Cache   string `help:"Folder of compiled kernels; none: nothing is kept." placeholder:"DIR"`
	Device  int    `default:"0" help:"Which GPU."`
}

func (gemmJITCmd) Help() string {
	return `Examples:
  CUDA_CACHE_PATH=/tmp/jit heddle gemm jit --cache /tmp/jit/own
  CUDA_CACHE_DISABLE=1 heddle gemm jit --threads 1 --match gemm --json

Loads every kernel of the list (heddle kernels list) and says how long that took: the first command the first time without any cache, the second time with the driver's and our own.`
}

func (c *gemmJITCmd) Run(env *cli.Env) error {
	match, err := regexp.Compile(c.Match)
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	var names []string
	var modules []*ptx.Module
	for _, k := range all.Kernels() {
		if !match.MatchString(k.Name) {
			continue
		}
		b, err := k.Build()
		if err != nil {
			return err
		}
		names, modules = append(names, k.Name), append(modules, b.Module())
	}
	dev, _, err := openRunner(c.Device)
	if err != nil {
		return absent(err)
	}
	cache := &cuda.Cache{}
	if c.Cache != "" {
		cache.Dir = filepath.Clean(c.Cache)
	}
	r, err := bench.MeasureJIT(dev, cache, names, modules, c.Threads)
	if err != nil {
		return err
	}
	return env.Emit(r, func(w io.Writer) {
		fmt.Fprintf(w, "%d kernels on %d threads: %.0f ms to print, %.0f ms to compile and load (slowest %s, %.0f ms); %d from our cache\n", r.Kernels, r.Threads, r.Print, r.Load, r.Name, r.Slowest, r.Cached)
	})
}
