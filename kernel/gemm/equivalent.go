package gemm

import "heddle/ptx"

// Equivalent gives the proof that a mutant of the kernel computes the same under every schedule, or "" where there is none.
func (g *Gemm) Equivalent(m ptx.Mutant) string {
	switch {
	case m.Op == ptx.OpMbarWait && m.Nth == 1 && m.Edit == "drop":
		if g.Config.Cluster() > 1 {
			return "the producer's drain before the last cluster barrier: every warp waits there for every consumer of the cluster, so no CTA ends before the last release has arrived"
		}
		return "the producer's drain in a CTA alone: the releases it waits for are arrivals of the CTA's own threads, which end after them"
	case m.Op == ptx.OpWgFence && m.Nth == 1 && m.Edit == "drop":
		return "the fence of later k steps: between products of one shape on one accumulator the order is guaranteed (PTX ISA, wgmma.fence), and nothing else touches its registers there"
	case m.Op == ptx.OpClusterWait && m.Nth == 1 && m.Edit == "drop":
		return "the last cluster barrier after the producer's drain: the drain has seen every release and every load of this CTA; what a thread does after the barrier is nothing"
	case m.Op == ptx.OpMbarInit && m.Edit == "move behind fence.mbarrier_init.release.cluster" && g.Config.Cluster() == 1:
		return "the last barrier made is an empty one, which in a CTA alone neither TMA nor another CTA touches; the cluster barrier orders it for the CTA's own threads"
	case m.Op == ptx.OpWarpSync && m.Nth == 1 && m.Edit == "drop" && g.Config.Cluster() == 1:
		return "the warp's sync behind the producer's branch: in a CTA alone nothing but the end follows"
	case m.Edit == "drop with the last cluster barrier" && g.Config.Cluster() == 1:
		return "a CTA alone has no peer that could touch its memory after its end"
	}
	return ""
}
