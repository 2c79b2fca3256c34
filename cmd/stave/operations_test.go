package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// docs/OPERATIONS.md names every metric of a node.
func TestOperations_Metrics(t *testing.T) {
	doc, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	base := freeBase(t, 1)
	b, _ := devUp(t, "--nodes", "1", "--base-port", fmt.Sprint(base))
	defer b.end(t)
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", base+101)) //nolint:noctx // a server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s, %v", resp.Status, err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "# HELP stave_")
		if !ok {
			continue
		}
		n++
		name, _, _ = strings.Cut("stave_"+name, " ")
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("%s is not in docs/OPERATIONS.md", name)
		}
	}
	if n < 20 {
		t.Errorf("%d metrics", n)
	}
}
