package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/catalog"
)

// wire sends a status as gRPC does.
func wire(t *testing.T, err error) error {
	t.Helper()
	st := StatusFromError(err)
	return ErrorFromStatus(status.FromProto(overTheWire(t, st.Proto())))
}

// Every code has one row, travels with its number, and comes back as the same
// sentinel; the two codes of one name stay apart.
func TestErrorTable_EveryCode(t *testing.T) {
	rows := ErrorTable()
	var listed []catalog.Code
	for _, r := range rows {
		listed = append(listed, r.Code)
	}
	if diff := cmp.Diff(catalog.Codes(), listed); diff != "" {
		t.Fatalf("the table does not list every code once, in order (-codes +table):\n%s", diff)
	}
	for _, r := range rows {
		if r.Code == catalog.Done {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", r.Code, r.Name()), func(t *testing.T) {
			want := &catalog.Error{Code: r.Code, Message: "a sentence", Limit: 1, Size: 2, Current: 3}
			st := StatusFromError(want)
			if st.Code() != r.Status || r.Status == codes.OK {
				t.Errorf("status %v, want %v", st.Code(), r.Status)
			}
			info, ok := st.Details()[0].(*errdetails.ErrorInfo)
			if !ok || info.GetDomain() != "stave" || info.GetReason() != r.Code.String() ||
				info.GetMetadata()["code"] != strconv.Itoa(int(r.Code)) {
				t.Errorf("info %v", info)
			}
			got := wire(t, want)
			if !errors.Is(got, r.Code) || CodeOf(got) != r.Code || RetryOf(got) != r.Retry {
				t.Errorf("got %v with code %d and retry %v", got, CodeOf(got), RetryOf(got))
			}
			var refusal *catalog.Error
			if errors.As(got, &refusal) {
				if diff := cmp.Diff(want, refusal); diff != "" {
					t.Error(diff)
				}
			} else if r.Code != catalog.ErrNotLeader {
				t.Errorf("got a %T", got)
			}
			if again := ErrorFromProto(ErrorToProto(want)); !errors.Is(again, r.Code) {
				t.Errorf("in a stream: %v", again)
			}
		})
	}
}

// The table agrees with Fluss on names, numbers and what may be retried.
func TestErrorTable_Vectors(t *testing.T) {
	text, err := os.ReadFile("../testdata/vectors/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Rows []struct {
			Code            catalog.Code
			Name            string
			Retriable       bool
			InvalidMetadata bool `json:"invalid_metadata"`
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Rows) == 0 {
		t.Fatalf("%d rows, %v", len(vectors.Rows), err)
	}
	for _, v := range vectors.Rows {
		r := LookupError(v.Code)
		if r.Code.String() != v.Name {
			t.Errorf("code %d is %s, want %s", v.Code, r.Code, v.Name)
		}
		want := RetryNone
		switch {
		case v.InvalidMetadata:
			want = RetryRefresh
		case v.Retriable:
			want = RetryBackoff
		}
		if r.Retry != want {
			t.Errorf("%s has retry %v, want %v", v.Name, r.Retry, want)
		}
	}
}

// The outcome of an unknown write is UNKNOWN: middleware that repeats
// UNAVAILABLE must not see it.
func TestErrorTable_OutcomeUnknown(t *testing.T) {
	st := StatusFromError(fmt.Errorf("propose RescaleTable: %w: %w", catalog.ErrOutcomeUnknown, context.DeadlineExceeded))
	if st.Code() != codes.Unknown {
		t.Errorf("status %v, want Unknown", st.Code())
	}
	if err := ErrorFromStatus(st); !errors.Is(err, catalog.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

// Typed errors come back with their data and unwrap to their code.
func TestErrors_Typed(t *testing.T) {
	layout := Layout{
		Incarnation: catalog.Incarnation{Number: 1, Random: 2}, Revision: 3, TableID: 0, Table: "shop.orders",
		PartitionID: catalog.Some[catalog.PartitionID](0), Partition: "2026", Buckets: 8, Epoch: 1,
	}
	tests := []struct {
		name string
		err  error
		code catalog.Code
	}{
		{"leader", &NotLeaderError{Leader: "n2", Addr: "h:7401", Message: "m"}, catalog.ErrNotLeader},
		{"no leader", &NotLeaderError{}, catalog.ErrNotLeader},
		{"stale", &StaleMetadataError{Layout: layout, Message: "m"}, catalog.ErrStaleMetadata},
		{"compacted", &CompactedError{Oldest: 0, Message: "m"}, catalog.ErrCompacted},
		{"restored", &RestoredError{Incarnation: catalog.Incarnation{Number: 5}}, catalog.ErrRestored},
		{"conflict", &catalog.Error{Code: catalog.ErrVersionConflict, Message: "m", Current: 1 << 63}, catalog.ErrVersionConflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wire(t, tt.err)
			if diff := cmp.Diff(tt.err, got); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(got, tt.code) {
				t.Errorf("%v is not %v", got, tt.code)
			}
			wrapped := wire(t, fmt.Errorf("step: %w", tt.err))
			if !errors.Is(wrapped, tt.code) || CodeOf(wrapped) != tt.code {
				t.Errorf("wrapped: %v", wrapped)
			}
		})
	}
}

// What no node of ours said is not taken for it.
func TestErrors_Foreign(t *testing.T) {
	unavailable := ErrorFromStatus(status.New(codes.Unavailable, "connection refused"))
	if errors.Is(unavailable, catalog.ErrUnavailable) || !errors.Is(unavailable, catalog.ErrNetwork) || RetryOf(unavailable) != RetryElsewhere {
		t.Errorf("transport: %v, retry %v", unavailable, RetryOf(unavailable))
	}
	foreign, err := status.New(codes.NotFound, "x").WithDetails(&errdetails.ErrorInfo{Domain: "other", Reason: "TABLE_NOT_EXIST"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ErrorFromStatus(foreign); errors.Is(got, catalog.ErrTableNotExist) {
		t.Errorf("another domain: %v", got)
	}
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := wire(t, fmt.Errorf("read: %w", want)); !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if got := StatusFromError(errors.New("surprise")); got.Code() != codes.Unknown {
		t.Errorf("an error without a code: %v", got)
	}
	if StatusFromError(nil).Code() != codes.OK || ErrorFromStatus(nil) != nil {
		t.Error("nil is not OK")
	}
	newer, err := status.New(codes.Aborted, "x").WithDetails(&errdetails.ErrorInfo{Domain: "stave", Reason: "NEWER", Metadata: map[string]string{"code": "1999"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := ErrorFromStatus(newer); CodeOf(got) != 1999 || RetryOf(got) != RetryNone {
		t.Errorf("a code of a newer node: %v", got)
	}
}
