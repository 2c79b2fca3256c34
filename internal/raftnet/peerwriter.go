package raftnet

import (
	"bufio"
	"runtime"
	"sync/atomic"
)

// frameQueue is how many frames may wait for a connection's writer.
const frameQueue = 256

// outgoing is a frame on its way to the network.
type outgoing struct {
	frame
	// state, if set, decides between the writer, which takes the frame, and the
	// caller, who gives it up: whoever moves it away from queued has won.
	state *atomic.Uint32
}

const (
	queued  uint32 = iota
	taken          // the writer has it: maybe sent
	givenUp        // never sent
)

// writeFrames sends what comes in until the connection breaks or dead is closed.
// It flushes whenever nothing more waits, so that a lone frame leaves at once
// and frames of many callers leave together.
func writeFrames(c *stallConn, in <-chan outgoing, dead <-chan struct{}) error {
	w := bufio.NewWriterSize(c, 64<<10)
	var head [frameHead]byte
	for {
		var o outgoing
		select {
		case o = <-in:
		case <-dead:
			return nil
		}
		for more := true; more; {
			if o.state == nil || o.state.CompareAndSwap(queued, taken) {
				if _, err := w.Write(appendFrameHead(head[:0], &o.frame)); err != nil {
					return err
				}
				if _, err := w.Write(o.payload); err != nil {
					return err
				}
			}
			if o, more = poll(in); !more {
				// Callers that are ready to run get to add theirs first.
				runtime.Gosched()
				o, more = poll(in)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func poll(in <-chan outgoing) (outgoing, bool) {
	select {
	case o := <-in:
		return o, true
	default:
		return outgoing{}, false
	}
}
