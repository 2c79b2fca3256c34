package catalog

import "cmp"

// admit checks a command against its client's record. It returns the record to
// write the result to, or the known result of a repeated sequence, or a refusal
// that is not stored.
func (b *Batch) admit(env Envelope) (client *Client, known *Result, err *Error) {
	if env.Client == 0 {
		if env.Sequence != 0 || env.Ack != 0 {
			return nil, nil, refuse(ErrInvalidArgument, "sequence %d and ack %d of client 0 must both be 0", env.Sequence, env.Ack)
		}
		return nil, nil, nil
	}
	c, ok := b.s.clients.get(env.Client)
	if !ok {
		return nil, nil, refuse(ErrSessionExpired, "client %d is not registered or has expired", env.Client)
	}
	if env.Sequence == 0 {
		return nil, nil, refuse(ErrInvalidArgument, "sequence of client %d is 0, sequences begin at 1", env.Client)
	}
	c = b.touch(c, env)
	if env.Sequence <= c.Watermark {
		return nil, nil, &Error{
			Code: ErrAlreadyAcknowledged, Current: c.Watermark,
			Message: "sequence " + utoa(env.Sequence) + " of client " + utoa(uint64(env.Client)) + " is at or below its watermark " + utoa(c.Watermark),
		}
	}
	if r, ok := c.results.get(env.Sequence); ok {
		return nil, &r.Result, nil
	}
	if env.Sequence-c.Watermark > ClientWindow {
		return nil, nil, &Error{
			Code: ErrBusy, Limit: ClientWindow, Size: env.Sequence - c.Watermark,
			Message: "sequence " + utoa(env.Sequence) + " of client " + utoa(uint64(env.Client)) + " is more than " +
				utoa(ClientWindow) + " above its watermark " + utoa(c.Watermark),
		}
	}
	return c, nil, nil
}

// touch returns the client's record, owned by the batch, with its activity and
// watermark moved.
func (b *Batch) touch(c *Client, env Envelope) *Client {
	if c.gen != b.s.gen {
		own := *c
		own.gen = b.s.gen
		c = &own
		b.s.clients.set(b.s.gen, c.ID, c)
	}
	b.s.hash -= c.hash
	c.Active, c.ActiveAt = b.s.cluster.Lease, b.rev
	if env.Ack > c.Watermark {
		b.forget(c, env.Ack)
		c.Watermark = env.Ack
	}
	c.hash = b.hashClient(c)
	b.s.hash += c.hash
	return c
}

// forget drops the stored results up to a sequence.
func (b *Batch) forget(c *Client, upTo uint64) {
	for {
		seq, r, ok := c.results.first()
		if !ok || seq > upTo {
			return
		}
		b.s.hash -= r.hash
		c.results.delete(b.s.gen, seq)
	}
}

// record stores the result of an executed command.
func (b *Batch) record(c *Client, seq uint64, r Result) {
	stored := &storedResult{Result: r}
	stored.hash = b.hashResult(c.ID, seq, &stored.Result)
	b.s.hash += stored.hash
	c.results.set(b.s.gen, seq, stored)
}

func (b *Batch) registerClient(c RegisterClient) (Result, *Error) {
	if n := b.s.clients.len(); n >= MaxClients {
		return Result{}, refuseLimit(ErrBusy, MaxClients, uint64(n)+1, "%d clients are registered, at most %d are allowed", n, MaxClients)
	}
	if err := checkText("client name", c.Name, maxNameBytes); err != nil {
		return Result{}, err
	}
	if c.TTL != 0 && (c.TTL < MinClientTTL || c.TTL > ClientTTL) {
		return Result{}, refuse(ErrInvalidArgument, "ttl %d ms of a client is not in %d..%d ms", c.TTL, MinClientTTL, ClientTTL)
	}
	id := b.s.cluster.NextClient
	b.s.cluster.NextClient++
	row := &Client{ID: id, Active: b.s.cluster.Lease, ActiveAt: b.rev, Name: c.Name, TTL: cmp.Or(c.TTL, ClientTTL), gen: b.s.gen}
	row.hash = b.hashClient(row)
	b.s.hash += row.hash
	b.s.clients.set(b.s.gen, id, row)
	return Result{Changed: true, IDs: []IDRange{{uint64(id), 1}}}, nil
}

func (b *Batch) expireClients(c ExpireClients) (Result, *Error) {
	var r Result
	for _, a := range c.Clients {
		row, ok := b.s.clients.get(a.ID)
		if !ok || row.ActiveAt != a.ActiveAt || b.s.cluster.Lease-row.Active < row.TTL {
			continue
		}
		b.deleteClient(row)
		r.Changed = true
	}
	return r, nil
}

func (b *Batch) deleteClient(c *Client) {
	c.results.all(func(_ uint64, r *storedResult) bool {
		b.s.hash -= r.hash
		return true
	})
	b.s.hash -= c.hash
	b.s.clients.delete(b.s.gen, c.ID)
}
