package data

import (
	"fmt"
	"strings"
)

// Summary is what became of the text.
type Summary struct {
	Files            int    `json:"files"`
	Bytes            int64  `json:"bytes"`
	Documents        int    `json:"documents"` // to train on
	HeldOutFiles     int    `json:"held_out_files"`
	HeldOutDocuments int    `json:"held_out_documents"`
	HeldOutBytes     int64  `json:"held_out_bytes"`
	Dropped          []Drop `json:"dropped"`
}

// Summary returns what has been listed and dropped so far. A binary file is found when it is read, so the list may grow.
func (c *Corpus) Summary() Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sum
	s.Dropped = append([]Drop{}, s.Dropped...)
	return s
}

// String is the summary for people, one fact a line.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "read %d files (%d bytes): %d documents to train on, %d held out (%d bytes)\n", s.Files, s.Bytes, s.Documents, s.HeldOutDocuments, s.HeldOutBytes)
	for _, d := range s.Dropped {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

// Packed is what a loader has made of the corpus so far.
type Packed struct {
	Documents int   `json:"documents"` // tokenized
	Bytes     int64 `json:"bytes"`
	Tokens    int64 `json:"tokens"`  // of those documents, separators included
	Samples   int64 `json:"samples"` // given out
	Labels    int64 `json:"labels"`  // given out: predicted tokens
	Padded    int64 `json:"padded"`  // given out: positions without a label
}

func (p Packed) String() string {
	return fmt.Sprintf("packed %d documents (%d bytes) into %d tokens; given out %d samples with %d labels, %d positions without a label\n",
		p.Documents, p.Bytes, p.Tokens, p.Samples, p.Labels, p.Padded)
}
