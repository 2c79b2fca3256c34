package catalog

// Batch applies commands to a private successor of a state. It is used by one
// goroutine; states it published stay valid and unchanged. Two batches begun
// from the same state must not be used at the same time.
//
// A command is validated completely before it changes anything.
type Batch struct {
	s   State
	rev Revision // of the command being applied
	// changes of the command being applied; the first one lies in event.
	changes []Change
	event   *eventOf1
	buf     []byte    // scratch for hashing
	bucket  []byte    // and for hashing a bucket
	touched []int     // scratch for the buckets that a command changed in a row
	plan    []planned // scratch for createPartitions
	// order caches the servers that may get replicas until a server is written.
	order      []Candidate
	racks      int
	orderKnown bool
}

// Begin returns a batch on top of a state.
func (s *State) Begin() *Batch {
	b := &Batch{s: *s}
	b.s.gen++
	return b
}

// Publish returns the state with everything applied so far. The batch can go
// on; what it does afterwards is not seen in the published state.
func (b *Batch) Publish() *State {
	s := b.s
	b.s.gen++
	return &s
}

// View returns the state the batch is working on. It is valid until the next
// call of Apply and must not leave the goroutine.
func (b *Batch) View() *State { return &b.s }

// Advance moves the revision over an entry that is not a command.
func (b *Batch) Advance(rev Revision) { b.s.revision = max(b.s.revision, rev) }

// Apply executes one command at its revision. The result is the same on every
// node; event is nil if no row that watchers see changed. The command and its
// slices become part of the state and must not be changed afterwards.
func (b *Batch) Apply(rev Revision, env Envelope, cmd Command) (res Result, event *Event) {
	b.rev = rev
	b.changes = nil
	b.Advance(rev)
	c := &b.s.cluster
	c.Lease = max(c.Lease, env.Lease)
	c.Wall = max(c.Wall, env.Wall)

	client, known, err := b.admit(env)
	if err != nil {
		return b.stamp(refused(err)), nil
	}
	if known != nil {
		return *known, nil
	}
	if e := b.fenced(env); e != nil {
		res = refused(e)
	} else if res, err = b.execute(cmd); err != nil {
		res = refused(err)
	}
	res.bound()
	res = b.stamp(res)
	if client != nil {
		b.record(client, env.Sequence, res)
	}
	if len(b.changes) > 0 {
		if b.event == nil { // the changes came from a trial
			b.event = new(eventOf1)
		}
		event = &b.event.Event
		*event = Event{Revision: rev, Kind: cmd.Kind(), Wall: c.Wall, Actor: env.Actor, Changes: b.changes}
		b.event = nil
	}
	return res, event
}

func (b *Batch) stamp(r Result) Result {
	r.Revision = b.rev
	return r
}

// fenced refuses a command decided under a leadership that is over.
func (b *Batch) fenced(env Envelope) *Error {
	if !env.Fence.Set {
		return nil
	}
	f, c := env.Fence.V, &b.s.cluster
	if f.Incarnation == c.Incarnation.Number && f.Coordinator == c.Coordinator {
		return nil
	}
	return &Error{
		Code: ErrFenced, Current: uint64(max(c.Coordinator, 0)),
		Message: "the command was decided under another leadership: incarnation " + utoa(f.Incarnation) + ", coordinator epoch " +
			itoa(int64(f.Coordinator)) + "; current are " + utoa(c.Incarnation.Number) + " and " + itoa(int64(c.Coordinator)),
	}
}

// execute runs one command. On an error nothing was changed.
func (b *Batch) execute(cmd Command) (Result, *Error) {
	if err := b.s.Allows(cmd.Kind()); err != nil {
		return Result{}, err
	}
	switch c := cmd.(type) {
	case NewTerm:
		return b.newTerm(c)
	case ActivateIncarnation:
		return b.activateIncarnation(c)
	case SetLimits:
		return b.setLimits(c)
	case SetFeatureLevel:
		return b.setFeatureLevel(c)
	case Checksum:
		return Result{}, nil
	case AnnounceMember:
		return b.announceMember(c)
	case ForgetMember:
		return b.forgetMember(c)
	case CreateDatabase:
		return b.createDatabase(c)
	case AlterDatabase:
		return b.alterDatabase(c)
	case DropDatabase:
		return b.dropDatabase(c)
	case CreateTable:
		return b.createTable(c)
	case AlterTable:
		return b.alterTable(c)
	case RescaleTable:
		return b.rescaleTable(c)
	case DropTable:
		return b.dropTable(c)
	case CreatePartitions:
		return b.createPartitions(c)
	case DropPartitions:
		return b.dropPartitions(c)
	case ImportBatch:
		return b.importBatch(c)
	case RegisterClient:
		return b.registerClient(c)
	case ExpireClients:
		return b.expireClients(c)
	case PutKV:
		return b.putKV(c)
	case DeleteKV:
		return b.deleteKV(c)
	case TxnKV:
		return b.txnKV(c)
	case AllocateIDs:
		return b.allocateIDs(c)
	default:
		return b.executePlacement(cmd)
	}
}

// executePlacement runs a command of the placement group.
func (b *Batch) executePlacement(cmd Command) (Result, *Error) {
	switch c := cmd.(type) {
	case RegisterServer:
		return b.registerServer(c)
	case RenewLeases:
		return b.renewLeases(c)
	case ExpireServers:
		return b.expireServers(c)
	case UnregisterServer:
		return b.unregisterServer(c)
	case TagServer:
		return b.tagServer(c)
	case AdjustISR:
		return b.adjustISR(c)
	case ElectLeaders:
		return b.electLeaders(c)
	case Reassign:
		return b.reassign(c)
	case StartRebalance:
		return b.startRebalance(c)
	case StepRebalance:
		return b.stepRebalance(c)
	case CancelRebalance:
		return b.cancelRebalance(c)
	case AckDeletion:
		return b.ackDeletion(c)
	case AssignPending:
		return b.assignPending(c)
	case PurgeDropped:
		return b.purgeDropped(c)
	default:
		return b.executeNext(cmd)
	}
}

func (b *Batch) unknown(cmd Command) (Result, *Error) {
	return Result{}, refuse(ErrUnknownCommand, "command %s is not supported at feature level %d", cmd.Kind(), b.s.cluster.Level)
}
