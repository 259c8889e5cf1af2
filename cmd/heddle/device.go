package main

import (
	"fmt"

	"heddle/compute"
	"heddle/compute/gpu"
	"heddle/internal/cli"
	"heddle/tensor"
	"heddle/train"
)

// onDevice is the machine of a --device flag, and what closes it: the one place where a back end is chosen. A GPU may be named by its number, cuda:1.
func onDevice(name string, t tensor.DType) (train.Machine, *gpu.Card, error) {
	on := train.Machine{Type: t}
	if name == "cpu" {
		if t == tensor.BF16 {
			return on, nil, cli.Exitf(cli.Invalid, "dtype bf16 is for GPUs; hint: --device cuda, or dtype f32")
		}
		return on, nil, nil
	}
	ordinal := 0
	if _, err := fmt.Sscanf(name, "cuda:%d", &ordinal); err != nil && name != "cuda" {
		return on, nil, cli.Exitf(cli.Usage, "device %q, want cpu, cuda or cuda:1", name)
	}
	if t == tensor.F64 {
		return on, nil, cli.Exitf(cli.Invalid, "dtype f64 is for CPUs; hint: f32 or bf16 on a GPU")
	}
	card, err := gpu.OpenCard(ordinal, cubinCache())
	if err != nil {
		return on, nil, absent(err)
	}
	on.Fleet = func(ranks int) (train.Fleet, error) { return fleet{gpu.OnCard(card, ranks)}, nil }
	return on, card, nil
}

// fleet makes gpu.Fleet what train wants.
type fleet struct{ *gpu.Fleet }

func (f fleet) Plan(rank int) compute.Leaf { return f.Fleet.Plan(rank) }

func (f fleet) Seat(rank int) (train.Seat, error) {
	l, end, err := f.Fleet.Seat(rank)
	return train.Seat{Leaf: l, Mover: l, Close: end}, err
}

// dtypeOf reads a --dtype flag.
func dtypeOf(name string) tensor.DType {
	return map[string]tensor.DType{"f64": tensor.F64, "f32": tensor.F32, "bf16": tensor.BF16}[name]
}
