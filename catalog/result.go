package catalog

import "strings"

// Result is what a command came to: the same on every node, stored for a
// registered client until it is acknowledged, and immutable.
type Result struct {
	// Code is Done or the code of a refusal.
	Code Code
	// Message is the sentence of a refusal.
	Message string
	// Revision is the raft index of the command that was executed, also when the
	// result is given again to a retry.
	Revision Revision
	// Changed is false when the state already was as asked for.
	Changed bool
	// IDs are the ids the command allocated or found, as consecutive runs.
	IDs []IDRange
	// Count is a bucket count and Epoch a layout or coordinator epoch.
	Count int32
	Epoch uint64
	// Version of a key after the command.
	Version uint64
	// Current, Limit and Size are details of a refusal, as in Error.
	Current, Limit, Size uint64
	// More says that IDs did not fit; the caller reads them from the state.
	More bool
	// Buckets are the outcomes of an AdjustISR, one per change, in order.
	Buckets []Code
}

// IDRange is Count ids from First.
type IDRange struct{ First, Count uint64 }

// Err returns nil for Done, else the refusal as an *Error.
func (r *Result) Err() error {
	if r.Code == Done {
		return nil
	}
	return &Error{Code: r.Code, Message: r.Message, Current: r.Current, Limit: r.Limit, Size: r.Size}
}

// FirstID returns the first id, or false if the command gave none.
func (r *Result) FirstID() (uint64, bool) {
	if len(r.IDs) == 0 {
		return 0, false
	}
	return r.IDs[0].First, true
}

func (r *Result) addID(id uint64) {
	if n := len(r.IDs); n > 0 && r.IDs[n-1].First+r.IDs[n-1].Count == id {
		r.IDs[n-1].Count++
		return
	}
	r.IDs = append(r.IDs, IDRange{id, 1})
}

// maxRanges and maxMessage keep an encoded result within MaxResultBytes.
const (
	maxRanges  = 40
	maxMessage = 400
)

// bound cuts what would make a stored result exceed MaxResultBytes.
func (r *Result) bound() {
	if len(r.IDs) > maxRanges {
		r.IDs, r.More = r.IDs[:maxRanges:maxRanges], true
	}
	// A name that is refused for its bytes is quoted in the message, which goes
	// out as text.
	r.Message = strings.ToValidUTF8(r.Message, "\uFFFD")
	if len(r.Message) > maxMessage {
		r.Message = cutText(r.Message, maxMessage)
	}
}

// cutText cuts s to at most n bytes at a character boundary and marks the cut.
func cutText(s string, n int) string {
	n -= len("...")
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}

func refused(e *Error) Result {
	return Result{Code: e.Code, Message: e.Message, Current: e.Current, Limit: e.Limit, Size: e.Size}
}
