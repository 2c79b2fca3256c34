package raftnode

import (
	"strings"
	"testing"
	"time"
)

// A node that is removed while it runs says so, is not ready, and is a member
// like the others after it was added and promoted again.
func TestNode_RemovedSaysSo(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		c.converge()
		n := c.followers()[0]
		c.until("it took part", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.id.Started
		})
		if hasHealth(n, "REMOVED") || !n.Ready() {
			t.Fatalf("a member: %v, ready %t", n.Status().Health, n.Ready())
		}
		if err := c.leader().RemoveMember(c.timeout(10*time.Second), n.cfg.ID); err != nil {
			t.Fatal(err)
		}
		c.until("the node knows", func() bool { return hasHealth(n, "REMOVED") && !n.Ready() })
		for _, h := range n.Status().Health {
			if h.Code == "REMOVED" && !strings.Contains(h.Message, "cluster add "+n.cfg.ID+"=") {
				t.Errorf("no way back is named: %s", h.Message)
			}
		}
		if err := c.leader().AddMember(c.timeout(10*time.Second), n.cfg.ID, n.cfg.ID+":7001"); err != nil {
			t.Fatal(err)
		}
		c.until("announced again", func() bool { return !hasHealth(n, "REMOVED") && n.Ready() })
		c.until("promoted", func() bool { return c.leader().PromoteMember(c.timeout(10*time.Second), n.cfg.ID) == nil })
		c.converge()
	})
}

// An address that nobody can connect to is refused with the bound.
func TestCheckAdvertised(t *testing.T) {
	for addr, want := range map[string]string{
		"h:1": "", "h:65535": "", "[::1]:7001": "", "h:http": "",
		"h": "missing port", ":7001": "want host and port", "h:0": "want host and port", "h:00": "1 to 65535", "h:65536": "1 to 65535",
		"h:99999999999999999999": "1 to 65535", "0.0.0.0:1": "wildcard", "[::]:1": "wildcard",
	} {
		err := checkAdvertised("raft address", addr)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr)) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
}
