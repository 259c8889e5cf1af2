package sample

// Decoder computes the logits that follow cached tokens. A row of logits must have the same bits whatever else is in the call
// and however the tokens before it were fed.
type Decoder interface {
	Vocab() int      // V
	Context() int    // most tokens of a sequence
	Version() uint64 // of the weights in use

	// Fork opens a sequence that holds the first keep tokens of another one, sharing their memory; Fork(None, 0) opens an
	// empty one. Close gives a sequence back.
	Fork(from Handle, keep int) Handle
	Close(Handle)

	// Forward puts tokens at the end of sequences and computes the logits after the last of each. A sequence may occur once.
	Forward([]Feed) error
}

// Handle names a sequence of a Decoder.
type Handle int

// None is no sequence.
const None Handle = -1

// Feed is what one sequence gets in a Forward.
type Feed struct {
	Seq    Handle
	Tokens []int32   // at least one
	Logits []float32 // [V], written; nil: not wanted
	Hidden []float32 // [H], written: what the head reads for the last token; nil: not wanted
}
