package server

import "google.golang.org/protobuf/proto"

// chunkBytes is how large a chunk of a list becomes, about.
const chunkBytes = 64 << 10

// chunks collects rows and sends them in messages of bounded size. At least one
// message is sent, so that the caller learns of the state.
type chunks[R proto.Message] struct {
	send  func(rows []R) error
	rows  []R
	bytes int
	sent  bool
	err   error
}

// add takes a row and reports whether more are wanted.
func (c *chunks[R]) add(row R) bool {
	c.rows = append(c.rows, row)
	c.bytes += proto.Size(row) + 4
	if c.bytes >= chunkBytes {
		c.flush()
	}
	return c.err == nil
}

func (c *chunks[R]) flush() {
	c.err = c.send(c.rows)
	c.rows, c.bytes, c.sent = nil, 0, true
}

// end sends what is left.
func (c *chunks[R]) end() error {
	if c.err == nil && (len(c.rows) > 0 || !c.sent) {
		c.flush()
	}
	return c.err
}
