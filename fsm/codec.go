package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
	"github.com/stavedb/stave/snapshots"
)

// maxList bounds every list of a command; the size of an entry bounds it
// further.
const maxList = MaxEntryBytes

// kind is how the body of one kind of command is written and read.
type kind struct {
	version uint8
	encode  func(*msgpack.Codec, catalog.Command) bool
	// decode may keep a value of the command's type in scratch between calls.
	decode func(c *msgpack.Codec, scratch *any) catalog.Command
}

// of makes both directions from the one function that states the fields.
func of[T catalog.Command](version uint8, fields func(*msgpack.Codec, *T)) kind {
	return kind{
		version: version,
		encode: func(c *msgpack.Codec, cmd catalog.Command) bool {
			v, ok := cmd.(T)
			if ok {
				fields(c, &v)
			}
			return ok
		},
		decode: func(c *msgpack.Codec, scratch *any) catalog.Command {
			v, ok := (*scratch).(*T)
			if !ok {
				v = new(T)
				*scratch = v
			}
			var zero T
			*v = zero
			fields(c, v)
			cmd := *v
			*v = zero // the command owns what it refers to
			return cmd
		},
	}
}

// kinds is indexed by catalog.Kind. Frozen: log format v1. A changed body is a
// new version of its kind beside the old one.
var kinds = [256]kind{
	catalog.KindNewTerm:             of(1, newTerm),
	catalog.KindActivateIncarnation: of(1, activateIncarnation),
	catalog.KindSetLimits:           of(1, setLimits),
	catalog.KindSetFeatureLevel:     of(1, setFeatureLevel),
	catalog.KindChecksum:            of(1, checksum),
	catalog.KindAnnounceMember:      of(1, announceMember),
	catalog.KindForgetMember:        of(1, forgetMember),

	catalog.KindCreateDatabase:   of(1, createDatabase),
	catalog.KindAlterDatabase:    of(1, alterDatabase),
	catalog.KindDropDatabase:     of(1, dropDatabase),
	catalog.KindCreateTable:      of(1, createTable),
	catalog.KindAlterTable:       of(1, alterTable),
	catalog.KindRescaleTable:     of(1, rescaleTable),
	catalog.KindDropTable:        of(1, dropTable),
	catalog.KindCreatePartitions: of(1, createPartitions),
	catalog.KindDropPartitions:   of(1, dropPartitions),
	catalog.KindImportBatch:      of(1, importBatch),

	catalog.KindRegisterServer:   of(1, registerServer),
	catalog.KindRenewLeases:      of(1, renewLeases),
	catalog.KindExpireServers:    of(1, expireServers),
	catalog.KindUnregisterServer: of(1, unregisterServer),
	catalog.KindTagServer:        of(1, tagServer),
	catalog.KindAssignPending:    of(1, assignPending),
	catalog.KindAdjustISR:        of(1, adjustISR),
	catalog.KindElectLeaders:     of(1, electLeaders),
	catalog.KindReassign:         of(1, reassign),
	catalog.KindStartRebalance:   of(1, startRebalance),
	catalog.KindStepRebalance:    of(1, stepRebalance),
	catalog.KindCancelRebalance:  of(1, cancelRebalance),
	catalog.KindAckDeletion:      of(1, ackDeletion),
	catalog.KindPurgeDropped:     of(1, purgeDropped),

	catalog.KindRegisterClient: of(1, registerClient),
	catalog.KindExpireClients:  of(1, expireClients),

	catalog.KindPutKV:       of(1, putKV),
	catalog.KindDeleteKV:    of(1, deleteKV),
	catalog.KindTxnKV:       of(1, txnKV),
	catalog.KindAllocateIDs: of(1, allocateIDs),
}

func opt[T any](c *msgpack.Codec, o *catalog.Opt[T], each func(*msgpack.Codec, *T)) {
	msgpack.Optional(c, &o.Set, &o.V, each)
}

func list[T any](c *msgpack.Codec, v *[]T, each func(*msgpack.Codec, *T)) {
	msgpack.Slice(c, v, maxList, each)
}

func text(c *msgpack.Codec, s *string) { c.String(s) }

func texts(c *msgpack.Codec, v *[]string) { list(c, v, text) }

func props(c *msgpack.Codec, v *[]catalog.Property) { list(c, v, snapshots.PropertyV1) }

func refs(c *msgpack.Codec, v *[]catalog.BucketRef) { list(c, v, snapshots.BucketRefV1) }
