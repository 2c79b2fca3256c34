package raftlog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Kind names a log store. It is written in configuration files; never rename.
type Kind string

// The two log stores.
const (
	// KindWAL is hashicorp/raft-wal, the default.
	KindWAL Kind = "wal"
	// KindBolt is hashicorp/raft-boltdb over bbolt.
	KindBolt Kind = "boltdb"
)

const (
	defaultLogCache   = 512
	defaultWriteLimit = 2 * time.Second

	// closeLimit bounds Close while a write hangs.
	closeLimit = 4 * time.Second
	// lockWait is how long Open waits for a lock held by somebody else.
	lockWait = 500 * time.Millisecond
)

// Config says where the stores live and who is told about their troubles.
// The zero value of every field but Dir is usable.
type Config struct {
	// Dir is created when missing (mode 0700). It belongs to Stores alone.
	Dir string
	// Kind selects the log store; default KindWAL. It must stay the same for
	// the life of Dir: each kind has its own files.
	Kind Kind
	// Verify checks the bytes of one raft.LogCommand entry each time one is
	// read, from the cache too. It must not keep or change data and may be
	// called concurrently. Default: no check above the store's own checksum.
	Verify func(data []byte) error
	// LogCache is the number of newest entries kept in memory; default 512.
	LogCache int
	// Logger receives life-cycle messages and repairs; default: none.
	Logger *slog.Logger
	// WriteLimit is how long one write may take before it is reported as
	// stalled; default 2 s. Below the disk's worst fsync it gates a healthy
	// node; above some seconds a cluster waits for a leader that cannot write.
	WriteLimit time.Duration

	// Ahead is asked on the goroutine that appends commands. When it says true the
	// append may return before it is on the disk, and the owner holds back what
	// depends on that, see Stores.Synced. It must say true only for entries that a
	// leader made itself. Default: never.
	Ahead func() bool

	// OnAppend is called with every append that is on the disk: how many entries
	// it had and how long writing and syncing them took, earlier tries excluded. It
	// runs on the goroutine that writes and must not block. Default: nobody.
	OnAppend func(entries int, took time.Duration)

	// OnTrouble is called once when writes begin to hang or fail.
	// OnRecovered is called once when every store writes again.
	// OnCorrupt is called once, when damage is met on a path where raft
	// would panic; the call of raft is held until Close.
	// OnFatal is called once, when retrying has ended; every further write is
	// held until Close.
	//
	// All four run one after another on one goroutine of Stores. They may
	// block, but must not call Close (start a goroutine for that).
	OnTrouble   func(Trouble)
	OnRecovered func()
	OnCorrupt   func(error)
	OnFatal     func(error)

	// Faults, when set, is asked around every write: the seam for tests of
	// disk hangs and disk errors. Default: none.
	Faults Faults

	segmentBytes int // of raft-wal; small in tests
}

// Op is one kind of access to the disk.
type Op string

// The operations that Faults sees.
const (
	// OpOpen opens or re-opens the log or the stable store.
	OpOpen Op = "open"
	// OpAppend appends entries to the log.
	OpAppend Op = "append"
	// OpDelete deletes one chunk of the log.
	OpDelete Op = "delete"
	// OpSet writes one key of the stable store.
	OpSet Op = "set"
	// OpMeta commits the list of segments; KindWAL only. It happens inside
	// OpOpen, OpDelete and, in the background, after OpAppend.
	OpMeta Op = "meta"
)

// Faults injects troubles of the disk. Both methods are called on the
// goroutine that writes and may block (a hang) or return an error, usually a
// syscall.Errno. They may be called concurrently for the log and the stable store.
type Faults interface {
	// Before is called before op touches the disk. With an error, op fails
	// and nothing was written.
	Before(op Op) error
	// After is called when op has been written. With an error, op fails
	// although its bytes are in the file, as after a failed fsync.
	After(op Op) error
}

func (c Config) withDefaults() Config {
	if c.Kind == "" {
		c.Kind = KindWAL
	}
	if c.LogCache == 0 {
		c.LogCache = defaultLogCache
	}
	if c.WriteLimit == 0 {
		c.WriteLimit = defaultWriteLimit
	}
	if c.Ahead == nil {
		c.Ahead = func() bool { return false }
	}
	if c.OnAppend == nil {
		c.OnAppend = func(int, time.Duration) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Faults == nil {
		c.Faults = noFaults{}
	}
	if c.segmentBytes == 0 {
		c.segmentBytes = defaultSegmentBytes
	}
	return c
}

// Validate reports every bad field at once; zero values are good.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: must be set"))
	}
	if c.Kind != "" && c.Kind != KindWAL && c.Kind != KindBolt {
		errs = append(errs, fmt.Errorf("kind: %q, want %q or %q", c.Kind, KindWAL, KindBolt))
	}
	if c.LogCache < 0 {
		errs = append(errs, fmt.Errorf("log cache: %d, want at least 0", c.LogCache))
	}
	if c.WriteLimit < 0 {
		errs = append(errs, fmt.Errorf("write limit: %v, want at least 0", c.WriteLimit))
	}
	return errors.Join(errs...)
}

type noFaults struct{}

func (noFaults) Before(Op) error { return nil }
func (noFaults) After(Op) error  { return nil }
