// Package failpoint ends the process in the midst of a write, for tests of what
// a kill leaves behind. Without the build tag stave_failpoints it is nothing: Hit
// is an empty function that is inlined away.
package failpoint

// Names of the write steps, in the order of a directory's life. A step that is
// named "-written" lies before what makes it count, as a rename or a commit; one
// named "-done" after it, before anybody was told.
const (
	IdentityWritten  = "identity-written"
	IdentityDone     = "identity-done"
	PairWritten      = "pair-written"
	BootstrapBegin   = "bootstrap-begin"
	BootstrapDone    = "bootstrap-done"
	StableBegin      = "stable-begin"
	StableDone       = "stable-done"
	SegmentWritten   = "segment-written"
	MetaBegin        = "wal-meta-begin"
	MetaDone         = "wal-meta-done"
	AppendBegin      = "log-append-begin"
	AppendDone       = "log-append-done"
	DeleteBegin      = "log-delete-begin"
	DeleteDone       = "log-delete-done"
	EmptyBegin       = "log-empty-begin"
	EmptyDone        = "log-empty-done"
	SnapshotCreated  = "snapshot-created"
	SnapshotSum      = "snapshot-sum-written"
	SnapshotWritten  = "snapshot-written"
	SnapshotDone     = "snapshot-done"
	SnapshotReap     = "snapshot-reap"
	SnapshotAside    = "snapshot-aside"
	RestoreBegin     = "fsm-restore-begin"
	RestoreDone      = "fsm-restore-done"
	InstallBegin     = "install-begin"
	InstallDone      = "install-done"
	UserRestoreBegin = "user-restore-begin"
	UserRestoreDone  = "user-restore-done"
)

// Names returns all of them.
func Names() []string {
	return []string{
		IdentityWritten, IdentityDone, PairWritten, BootstrapBegin, BootstrapDone, StableBegin, StableDone, SegmentWritten, MetaBegin, MetaDone,
		AppendBegin, AppendDone, DeleteBegin, DeleteDone, EmptyBegin, EmptyDone, SnapshotCreated, SnapshotSum, SnapshotWritten, SnapshotDone,
		SnapshotReap, SnapshotAside, RestoreBegin, RestoreDone, InstallBegin, InstallDone, UserRestoreBegin, UserRestoreDone,
	}
}
