package watch

import "github.com/stavedb/stave/catalog"

// Defaults of Config.
const (
	DefaultMaxRevisions  = 100_000
	DefaultMaxBytes      = 64 << 20
	DefaultMaxPending    = 8 << 20
	DefaultBookmarkEvery = 1000
)

// Config sets the bounds of a History. Values <= 0 mean the default.
type Config struct {
	// MaxRevisions is how many revisions back the history reaches, those without
	// an event included. Default 100,000. A lower value makes readers that were
	// away read a whole state sooner.
	MaxRevisions int
	// MaxBytes bounds the estimated memory of the events kept and of what was
	// encoded of them, at every publish. Default 64 MiB. The newest event is kept
	// whatever its size.
	MaxBytes int64
	// MaxPending is how many bytes of events a subscription that once caught up
	// may fall behind before its Err is a SlowError. One that starts further back
	// may be behind as much as at its start and this. Default 8 MiB.
	MaxPending int64
	// BookmarkEvery is how many revisions apart bookmarks are, for subscriptions
	// that do not say otherwise. Default 1,000. Small values wake idle
	// subscriptions for every command.
	BookmarkEvery catalog.Revision
	// TablePath returns the path of a table by id, also of a dropped one that is
	// still being purged, in the state that the publisher just made visible. The
	// publisher calls it for events with partitions, whose rows name their table
	// by id alone. Without it only tables that the same batch writes are known,
	// and other partitions match no filter by database or path.
	TablePath func(catalog.TableID) (path string, ok bool)
}

func (c Config) withDefaults() Config {
	if c.MaxRevisions <= 0 {
		c.MaxRevisions = DefaultMaxRevisions
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxPending <= 0 {
		c.MaxPending = DefaultMaxPending
	}
	if c.BookmarkEvery == 0 {
		c.BookmarkEvery = DefaultBookmarkEvery
	}
	if c.TablePath == nil {
		c.TablePath = func(catalog.TableID) (string, bool) { return "", false }
	}
	return c
}
