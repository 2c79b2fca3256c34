//go:build stave_next

package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// See catalog.NextMarker: what the build after this one would add.
var _ = func() bool {
	kinds[catalog.KindNextMarker] = of(1, nextMarker)
	return true
}()

func nextMarker(c *msgpack.Codec, v *catalog.NextMarker) {
	c.Record(1)
	c.String(&v.Text)
}
