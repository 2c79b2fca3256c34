package catalog

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type electionState struct {
	Leader           ServerID         `json:"leader"`
	LeaderEpoch      LeaderEpoch      `json:"leader_epoch"`
	ISR              []ServerID       `json:"isr"`
	Standby          []ServerID       `json:"standby"`
	CoordinatorEpoch CoordinatorEpoch `json:"coordinator_epoch"`
	BucketEpoch      BucketEpoch      `json:"bucket_epoch"`
}

func (e electionState) bucket() BucketState {
	return BucketState{
		Ready: true, Leader: e.Leader, LeaderEpoch: e.LeaderEpoch, BucketEpoch: e.BucketEpoch, CoordinatorEpoch: e.CoordinatorEpoch,
		ISR: e.ISR, Standby: e.Standby,
	}
}

// TestElection_Vectors runs every row that upstream's election code produced.
func TestElection_Vectors(t *testing.T) {
	data, err := os.ReadFile("../testdata/vectors/leader_election.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Count int `json:"count"`
		Rows  []struct {
			Strategy     string        `json:"strategy"`
			Assignment   []ServerID    `json:"assignment"`
			NewReplicas  []ServerID    `json:"new_replicas"`
			Live         []ServerID    `json:"live"`
			ShuttingDown []ServerID    `json:"shutting_down"`
			Current      electionState `json:"current"`
			Standby      bool          `json:"standby_enabled"`
			Result       *struct {
				State electionState `json:"state"`
			} `json:"result"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) != file.Count || file.Count == 0 {
		t.Fatalf("%d rows, the file says %d", len(file.Rows), file.Count)
	}
	for i, r := range file.Rows {
		alive := func(id ServerID) bool { return slices.Contains(r.Live, id) }
		leaving := func(id ServerID) bool { return slices.Contains(r.ShuttingDown, id) }
		var got BucketState
		var ok bool
		switch r.Strategy {
		case "default":
			got, ok = elected(r.Current.bucket(), r.Assignment, r.Standby, alive)
		case "controlled_shutdown":
			got, ok = handedOver(r.Current.bucket(), r.Assignment, r.Standby, leaving, alive)
		case "reassignment":
			got, ok = reassigned(r.Current.bucket(), r.NewReplicas, r.Standby, alive)
		default:
			t.Fatalf("row %d: strategy %q", i, r.Strategy)
		}
		if ok != (r.Result != nil) {
			t.Errorf("row %d: elected %v, want %v", i, ok, r.Result != nil)
			continue
		}
		if !ok {
			continue
		}
		want := r.Result.State.bucket()
		if len(want.Standby) == 0 {
			want.Standby = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("row %d %s: (-want +got)\n%s", i, r.Strategy, diff)
		}
	}
}
