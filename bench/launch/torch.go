package launch

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

//go:embed torch.py
var torchProgram string

// torch runs PyTorch's chains in a process of its own, before ours so that two contexts do not share the device.
func (l Lab) torch(ctx context.Context, python string) (map[int][]Peer, error) {
	args := []string{"-c", torchProgram, fmt.Sprint(l.Rounds), fmt.Sprint(l.Chains)}
	for _, n := range l.Sizes {
		args = append(args, fmt.Sprint(n))
	}
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("launch: %s does not start: %w", python, err)
	}
	peers := map[int][]Peer{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct {
			N       int    `json:"n"`
			Version string `json:"version"`
			Peer
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			l.Progress("torch says %q", lines.Text())
			continue
		}
		line.Peer.Version = line.Version
		peers[line.N] = append(peers[line.N], line.Peer)
		l.Progress("%6d %-22s chain %s µs live, %s queued, host %s a call", line.N, line.Name, line.Live, line.Queued, line.Host)
	}
	if err := cmd.Wait(); err != nil {
		return peers, fmt.Errorf("launch: PyTorch's chains: %w; hint: --torch names a python with PyTorch for CUDA", err)
	}
	return peers, nil
}
