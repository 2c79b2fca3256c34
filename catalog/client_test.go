package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// as sets who sends the next commands.
func (h *history) as(id ClientID, seq, ack uint64) *history {
	h.env.Client, h.env.Sequence, h.env.Ack = id, seq, ack
	return h
}

func (h *history) client() ClientID {
	h.t.Helper()
	h.as(0, 0, 0)
	return ClientID(h.firstID(RegisterClient{Name: "test"}))
}

func (h *history) stored(id ClientID) []uint64 {
	var out []uint64
	if c, ok := h.last.Client(id); ok {
		c.Results(func(seq uint64, _ Result) bool {
			out = append(out, seq)
			return true
		})
	}
	return out
}

// TestClient_DenseIDs: ids begin at 1, and an expired one does not come back.
func TestClient_DenseIDs(t *testing.T) {
	h := newHistory(t)
	for want := ClientID(1); want <= 3; want++ {
		if got := h.client(); got != want {
			t.Errorf("client %d, want %d", got, want)
		}
	}
	c, _ := h.last.Client(3)
	h.env.Lease += ClientTTL
	h.must(ExpireClients{Clients: []ClientActivity{{3, c.ActiveAt}}})
	if got := h.client(); got != 4 {
		t.Errorf("client %d after an expiry, want 4", got)
	}
}

// TestClient_DuplicateGetsFirstResult: also of a refusal, whatever happened since.
func TestClient_DuplicateGetsFirstResult(t *testing.T) {
	h := newHistory(t)
	id := h.client()
	h.orders(2)
	h.as(id, 1, 0)
	first := h.must(CreatePartitions{Table: "shop.orders", Specs: dt("a")})
	h.as(id, 2, 0)
	refused := h.refused(ErrPartitionAlreadyExists, CreatePartitions{Table: "shop.orders", Specs: dt("a")})
	h.as(0, 0, 0).must(DropTable{Table: "shop.orders"})
	hash := h.last.hash
	got, ev := h.as(id, 1, 0).try(CreatePartitions{Table: "shop.orders", Specs: dt("a")})
	if d := cmp.Diff(first, got); d != "" || ev != nil {
		t.Errorf("retry of 1: event %v, %s", ev, d)
	}
	if got, _ := h.as(id, 2, 0).try(PutKV{Key: "other"}); !cmp.Equal(refused, got) {
		t.Errorf("retry of 2: %+v, want %+v", got, refused)
	}
	if _, ok := h.last.KeyValue("other"); ok || h.last.hash == hash {
		t.Error("a retry was executed, or its activity not recorded")
	}
	// The records survive a copy of the state.
	if d := cmp.Diff([]uint64{1, 2}, h.stored(id)); d != "" {
		t.Error(d)
	}
	reload(t, h.last)
}

// TestClient_Acknowledged: at or below the watermark nothing is executed, and
// nothing is stored.
func TestClient_Acknowledged(t *testing.T) {
	h := newHistory(t)
	id := h.client()
	put := PutKV{Key: "k"}
	for seq := uint64(1); seq <= 5; seq++ {
		h.as(id, seq, 0).must(put)
	}
	h.as(id, 6, 4).must(put)
	if d := cmp.Diff([]uint64{5, 6}, h.stored(id)); d != "" {
		t.Error(d)
	}
	for _, seq := range []uint64{1, 4} {
		res := h.as(id, seq, 0).refused(ErrAlreadyAcknowledged, put)
		if res.Current != 4 {
			t.Errorf("watermark %d, want 4", res.Current)
		}
	}
	// A command that acknowledges itself is not executed either.
	h.as(id, 9, 9).refused(ErrAlreadyAcknowledged, put)
	if v, _ := h.last.KeyValue("k"); v.Version != 6 || len(h.stored(id)) != 0 {
		t.Errorf("version %d, stored %v, want 6 and none", v.Version, h.stored(id))
	}
	h.as(id, 10, 2).must(put) // an older watermark moves nothing back
	if c, _ := h.last.Client(id); c.Watermark != 9 {
		t.Errorf("watermark %d, want 9", c.Watermark)
	}
}

// TestClient_Window: 4,096 above the watermark are accepted, one more is BUSY
// and can be sent again.
func TestClient_Window(t *testing.T) {
	h := newHistory(t)
	id := h.client()
	put := PutKV{Key: "k"}
	res := h.as(id, ClientWindow+1, 0).refused(ErrBusy, put)
	if res.Limit != ClientWindow || res.Size != ClientWindow+1 {
		t.Errorf("limit %d, size %d", res.Limit, res.Size)
	}
	h.as(id, ClientWindow, 0).must(put)
	h.as(id, ClientWindow+1, 0).refused(ErrBusy, put)
	h.as(id, 1, 0).must(put)
	h.as(id, ClientWindow+1, 1).must(put)
	h.as(id, 1<<64-1, 1).refused(ErrBusy, put)
	if d := cmp.Diff([]uint64{ClientWindow, ClientWindow + 1}, h.stored(id)); d != "" {
		t.Error(d)
	}
}

// TestClient_TTL: a client that asks for less lives for less, in its bounds.
func TestClient_TTL(t *testing.T) {
	h := newHistory(t)
	for _, bad := range []Millis{-1, 1, MinClientTTL - 1, ClientTTL + 1} {
		h.refused(ErrInvalidArgument, RegisterClient{TTL: bad}, "ttl "+itoa(int64(bad)), itoa(int64(MinClientTTL)), itoa(int64(ClientTTL)))
	}
	long, short := h.client(), ClientID(h.firstID(RegisterClient{TTL: MinClientTTL}))
	expire := func() ExpireClients {
		var c ExpireClients
		for _, id := range []ClientID{long, short} {
			v, _ := h.last.Client(id)
			c.Clients = append(c.Clients, ClientActivity{id, v.ActiveAt})
		}
		return c
	}
	h.env.Lease += MinClientTTL - 1
	h.unchanged(expire())
	h.as(short, 1, 0).must(PutKV{Key: "k"}) // a command counts from then on
	h.as(0, 0, 0)
	h.env.Lease += MinClientTTL - 1
	h.unchanged(expire())
	h.env.Lease++
	h.must(expire())
	if _, ok := h.last.Client(short); ok {
		t.Error("the client with a short ttl lives")
	}
	if _, ok := h.last.Client(long); !ok {
		t.Error("the other one is gone")
	}
}

// TestClient_Expired: unknown and expired clients are told, every time.
func TestClient_Expired(t *testing.T) {
	h := newHistory(t)
	put := PutKV{Key: "k"}
	h.as(1, 1, 0).refused(ErrSessionExpired, put, "client 1")
	id := h.client()
	h.as(id, 1, 0).must(put)
	c, _ := h.last.Client(id)
	seen := ClientActivity{id, c.ActiveAt}
	h.as(0, 0, 0)
	h.env.Lease += ClientTTL - 1
	h.unchanged(ExpireClients{Clients: []ClientActivity{seen}}) // not old enough
	h.as(id, 2, 0).must(put)
	h.as(0, 0, 0)
	h.env.Lease += ClientTTL
	h.unchanged(ExpireClients{Clients: []ClientActivity{seen}}) // was active since
	c, _ = h.last.Client(id)
	res := h.must(ExpireClients{Clients: []ClientActivity{{id, c.ActiveAt}, {id, c.ActiveAt}, {77, 1}}})
	if !res.Changed {
		t.Error("nothing expired")
	}
	for _, seq := range []uint64{1, 2, 3} {
		h.as(id, seq, 0).refused(ErrSessionExpired, put)
	}
	if v, _ := h.last.KeyValue("k"); v.Version != 2 {
		t.Errorf("version %d, want 2", v.Version)
	}
}

// TestClient_Zero: client 0 is not deduplicated and has no numbers.
func TestClient_Zero(t *testing.T) {
	h := newHistory(t)
	for range 3 {
		h.must(PutKV{Key: "k"})
	}
	if v, _ := h.last.KeyValue("k"); v.Version != 3 {
		t.Errorf("version %d, want 3", v.Version)
	}
	h.as(0, 1, 0).refused(ErrInvalidArgument, PutKV{Key: "k"})
	h.as(0, 0, 1).refused(ErrInvalidArgument, PutKV{Key: "k"})
	id := h.client()
	h.as(id, 0, 0).refused(ErrInvalidArgument, PutKV{Key: "k"}, "sequence of client 1 is 0")
}

// TestClient_Bound: at most so many clients.
func TestClient_Bound(t *testing.T) {
	b := NewState().Begin()
	for i := range MaxClients {
		if r, _ := b.Apply(Revision(i+1), Envelope{}, RegisterClient{}); r.Code != Done {
			t.Fatal(r.Err())
		}
	}
	if r, _ := b.Apply(MaxClients+1, Envelope{}, RegisterClient{}); r.Code != ErrBusy || r.Limit != MaxClients {
		t.Errorf("one more: %v", r.Err())
	}
}

// TestResult_Bound: what is stored stays within a kilobyte, as valid text.
func TestResult_Bound(t *testing.T) {
	h := newHistory(t)
	h.orders(1)
	for i := range 100 {
		h.create("shop.orders", utoa(uint64(100+i)))
	}
	for i := 0; i < 100; i += 2 {
		h.must(DropPartitions{Table: "shop.orders", Specs: dt(utoa(uint64(100 + i)))})
	}
	var specs []PartitionSpec
	for i := 1; i < 100; i += 2 {
		specs = append(specs, dt(utoa(uint64(100+i)))...)
	}
	res := h.must(CreatePartitions{Table: "shop.orders", Specs: specs, IfNotExists: true})
	if len(res.IDs) != maxRanges || !res.More {
		t.Errorf("%d ranges, more %v", len(res.IDs), res.More)
	}
	res = h.refused(ErrInvalidDatabase, CreateDatabase{Name: strings.Repeat("é", 5000)})
	if len(res.Message) > maxMessage || !strings.HasSuffix(res.Message, "...") || strings.ContainsRune(res.Message, '\uFFFD') {
		t.Errorf("message of %d bytes: %q", len(res.Message), res.Message)
	}
}

// TestFence: a command decided under another leadership changes nothing.
func TestFence(t *testing.T) {
	h := newHistory(t)
	h.must(NewTerm{Term: 3, Leader: "n1"})
	h.must(ActivateIncarnation{ClusterID: "c", Incarnation: Incarnation{100, 1}})
	h.must(NewTerm{Term: 5, Leader: "n2"})
	for _, f := range []Fence{{100, 0}, {100, 2}, {99, 1}, {101, 1}} {
		h.env.Fence = Some(f)
		res := h.refused(ErrFenced, PutKV{Key: "k"}, "incarnation "+utoa(f.Incarnation))
		if res.Current != 1 {
			t.Errorf("current epoch %d, want 1", res.Current)
		}
	}
	h.env.Fence = Some(Fence{100, 1})
	h.must(PutKV{Key: "k"})
}

// TestNewTerm_Idempotent: the first epoch is 0, each later term that led has one
// more, and a term announced twice has one.
func TestNewTerm_Idempotent(t *testing.T) {
	h := newHistory(t)
	if got := h.last.Cluster().Coordinator; got != NoCoordinator {
		t.Errorf("epoch before any term %d", got)
	}
	for i, term := range []uint64{2, 3, 9, 10} {
		res := h.must(NewTerm{Term: term, Leader: "n" + utoa(term)})
		if res.Epoch != uint64(i) || !res.Changed {
			t.Errorf("term %d: %+v, want epoch %d", term, res, i)
		}
		for _, again := range []uint64{term, term - 1, 0} {
			if res := h.unchanged(NewTerm{Term: again, Leader: "x"}); res.Epoch != uint64(i) {
				t.Errorf("term %d again: epoch %d, want %d", again, res.Epoch, i)
			}
		}
	}
	if c := h.last.Cluster(); c.Leader != "n10" || c.Term != 10 {
		t.Errorf("cluster %+v", c)
	}
}
