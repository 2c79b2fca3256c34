package main

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/api"
)

// A member that is what is asked for already is told as such, with exit code 0;
// another address for it is refused.
func TestCluster_AlreadySo(t *testing.T) {
	r, _ := newDev(t, 3)
	st := decode[api.ClusterStatus](t, r.must(t, "cluster", "status", "-o", "json"))
	if len(st.Members) != 3 || st.Changed != nil {
		t.Fatalf("status: %+v", st)
	}
	m := st.Members[0]
	for _, tt := range []struct{ verb, arg, want string }{
		{"add", m.ID + "=" + m.RaftAddr, "notice: nothing changed: node " + m.ID + " is a member at " + m.RaftAddr + " already\n"},
		{"promote", m.ID, "notice: nothing changed: node " + m.ID + " votes already\n"},
	} {
		o := r.run(t.Context(), "cluster", tt.verb, tt.arg)
		if o.code != exitDone || o.errs != tt.want || !strings.Contains(o.out, m.RaftAddr) {
			t.Errorf("%s: exit code %d, %q, %s", tt.verb, o.code, o.errs, o.out)
		}
		o = r.run(t.Context(), "cluster", tt.verb, tt.arg, "-o", "json")
		if o.code != exitDone || o.errs != "" {
			t.Fatalf("%s as JSON: exit code %d, %q", tt.verb, o.code, o.errs)
		}
		if got := decode[api.ClusterStatus](t, o.out); got.Changed == nil || *got.Changed || len(got.Members) != 3 {
			t.Errorf("%s as JSON: %+v", tt.verb, got)
		}
	}
	r.fails(t, exitRefused, []string{"INVALID_ARGUMENT", m.RaftAddr, "127.0.0.1:9"}, "cluster", "add", m.ID+"=127.0.0.1:9")
}
