package data

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"sync"
)

const (
	wholeBytes  = 1 << 30  // a corpus up to this size is summed in full
	sampleCount = 16       // blocks of each file of a larger one
	sampleBytes = 64 << 10 // of each block
)

// sums are the checksums of the files' contents. Files of a corpus larger than wholeBytes are summed at their ends and at some places between, which notices
// most changes and costs little.
func (c *Corpus) sums() ([]string, error) {
	sums, errs := make([]string, len(c.files)), make([]error, len(c.files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				sums[i], errs[i] = sum(c.files[i].path, c.files[i].size, c.sum.Bytes <= wholeBytes)
			}
		})
	}
	for i := range c.files {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// sum is two checksums of 32 bits, for accidents: nobody is to be kept from forging text.
func sum(path string, size int64, whole bool) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", &Error{Path: path, Err: reason(err)}
	}
	defer f.Close()
	castagnoli, ieee := crc32.New(crc32.MakeTable(crc32.Castagnoli)), crc32.NewIEEE()
	both := io.MultiWriter(castagnoli, ieee)
	blocks, width := int64(1), size
	if !whole && size > sampleCount*sampleBytes {
		blocks, width = sampleCount, sampleBytes
	}
	for i := range blocks {
		at := int64(0)
		if blocks > 1 {
			at = (size - width) * i / (blocks - 1)
		}
		n, err := io.Copy(both, io.NewSectionReader(f, at, width))
		if err != nil {
			return "", &Error{Path: path, Err: reason(err)}
		}
		if n < width {
			return "", shorter(path, at+n)
		}
	}
	return fmt.Sprintf("%08x%08x", castagnoli.Sum32(), ieee.Sum32()), nil
}
