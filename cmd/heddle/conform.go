package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"heddle/internal/cli"
	"heddle/ptx"
	"heddle/ptx/conform"
	"heddle/ptx/emulate"
)

type kernelsConformCmd struct {
	Programs int           `default:"100" help:"Random programs of each family."`
	First    int64         `default:"1" help:"Seed of the first."`
	Device   int           `default:"0" help:"Which GPU."`
	Alone    bool          `help:"Hold the emulator to the definitions and to itself only; no GPU."`
	Limit    time.Duration `default:"9m" help:"End the process after this long."`
	Stall    time.Duration `default:"60s" help:"End it when it is silent for this long."`
}

func (kernelsConformCmd) Help() string {
	return `heddle kernels conform --alone
    TMA copies and matrix products on the emulator against their definitions, random programs under two schedules
heddle kernels conform --programs 2000 --json
    the same programs on the GPU and on the emulator: bits equal, approximations within their ulps`
}

type conformFamily struct {
	Family   string   `json:"family"`
	Programs int      `json:"programs"`
	Differ   int      `json:"differ"`
	First    []string `json:"first_differences"` // up to five
}

func (f *conformFamily) count(err error) {
	f.Programs++
	if err == nil {
		return
	}
	f.Differ++
	if len(f.First) < 5 {
		f.First = append(f.First, err.Error())
	}
}

func (c *kernelsConformCmd) Run(ctx context.Context, env *cli.Env) error {
	if c.Alone {
		return c.compare(ctx, env, emulate.Emulator{Seed: 7, Async: emulate.Late}, "the emulator under another schedule")
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error {
		dev, run, err := openRunner(c.Device)
		if err != nil {
			return absent(err)
		}
		return c.compare(ctx, env, run, dev.Name)
	})
}

// compare runs every program on other and on the emulator.
func (c *kernelsConformCmd) compare(ctx context.Context, env *cli.Env, other ptx.Runner, name string) error {
	all := []*conformFamily{c.fixed(other, "copies"), c.fixed(other, "products")}
	for _, family := range conform.Families() {
		f, err := c.random(ctx, env, other, family)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	differ := 0
	for _, f := range all {
		differ += f.Differ
	}
	err := env.Emit(map[string]any{"compared_with": name, "families": all, "differ": differ}, func(w io.Writer) {
		for _, f := range all {
			fmt.Fprintf(w, "%-9s %6d programs, %d differ\n", f.Family, f.Programs, f.Differ)
			for _, d := range f.First {
				fmt.Fprintln(w, "   ", d)
			}
		}
	})
	if err == nil && differ > 0 {
		return cli.Exitf(cli.Check, "kernels: %d programs differ from %s", differ, name)
	}
	return err
}

// fixed checks the programs that know their answer, on both.
func (c *kernelsConformCmd) fixed(other ptx.Runner, family string) *conformFamily {
	f := &conformFamily{Family: family, First: []string{}}
	check := func(p conform.Program, err error) {
		if err == nil {
			err = p.Check(emulate.Emulator{})
		}
		if err == nil {
			err = p.Check(other)
		}
		f.count(err)
	}
	if family == "copies" {
		for _, p := range conform.Copies() {
			check(p.Program())
		}
		check(conform.Exchange())
		return f
	}
	for _, p := range conform.Products() {
		check(p.Program())
	}
	check(conform.WarpProduct(c.First))
	return f
}

// together is how many random programs make up a module: a device compiles them in one go.
const together = 40

func (c *kernelsConformCmd) random(ctx context.Context, env *cli.Env, other ptx.Runner, family string) (*conformFamily, error) {
	f := &conformFamily{Family: family, First: []string{}}
	for first := 0; first < c.Programs; first += together {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, programs := &ptx.Module{}, []conform.Program{}
		for i := first; i < min(first+together, c.Programs); i++ {
			p, err := conform.Random(family, c.First+int64(i))
			if err != nil {
				return nil, err
			}
			m.Entries = append(m.Entries, p.Entry)
			programs = append(programs, p)
		}
		for _, p := range programs {
			got, err := p.RunIn(m, other)
			if err == nil {
				var want []byte
				if want, err = p.RunIn(m, emulate.Emulator{}); err == nil {
					err = p.Same(got, want)
				}
			}
			f.count(err)
		}
		fmt.Fprintf(env.Err, "%s: %d of %d, %d differ\n", family, f.Programs, c.Programs, f.Differ)
	}
	return f, nil
}
