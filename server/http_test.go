package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stavedb/stave/internal/memnet"
	"github.com/stavedb/stave/raftnode"
)

// web is a server on real sockets.
type web struct {
	t    *testing.T
	base string
}

func (w web) do(method, path, body string) (int, string, http.Header) {
	w.t.Helper()
	return w.send(method, path, strings.NewReader(body))
}

func (w web) send(method, path string, body io.Reader) (int, string, http.Header) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(timeout(w.t, 20*time.Second), method, w.base+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// newWeb opens a node and serves HTTP on the loopback, beginning with a Front.
func newWeb(t *testing.T) (web, *served) {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	w := web{t, "http://" + l.Addr().String()}
	front := NewFront(func() string { return "waits for n2" })
	go func() { _ = front.Serve(l) }() //nolint:errcheck // ends with Close
	for path, want := range map[string]string{"/livez": "200 ok", "/readyz": "503 node is not open yet: waits for n2", "/v1/databases": `503 {"error":`} {
		code, text, _ := w.do("GET", path, "")
		if got := fmt.Sprintf("%d %s", code, text); !strings.HasPrefix(got, want) {
			t.Errorf("%s before the node is open: %s, want %s", path, got, want)
		}
	}
	network := memnet.New()
	n := must(raftnode.Open(timeout(t, time.Minute), raftnode.Config{
		ID: "n1", Dir: t.TempDir(), RaftAddr: "n1:7001", InitialCluster: map[string]string{"n1": "n1:7001"}, Network: network.Host("n1"), APIAddr: "n1:7401",
	}))(t)
	reg := prometheus.NewRegistry()
	s := serveNode(t, "n1", n, func(c *Config) { c.Front, c.Registerer, c.Gatherer, c.PProf = front, reg, reg, true })
	s.await(10*time.Second, "ready", func() error { return s.srv.ready(t.Context()) })
	return w, s
}

func TestHTTP(t *testing.T) {
	w, _ := newWeb(t)
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/livez", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ok"},
		{"POST", "/v1/databases", `{"name":"shop"}`, 200, `"database":{"name":"shop"`},
		{"POST", "/v1/databases", `{"name":"shop"}`, 409, `{"error":{"code":"DATABASE_ALREADY_EXIST","message":"database shop already exists`},
		{"POST", "/v1/databases", `{"nam":"shop"}`, 400, `unknown field`},
		{"POST", "/v1/databases", `{`, 400, `{"error":{"code":"INVALID_ARGUMENT"`},
		{"POST", "/v1/tables", `{"table":"shop.t","columns":[{"name":"a","type":"INT"},{"name":"dt","type":"STRING"}],"partition_keys":["dt"],"buckets":4}`, 200, `"bucket_count":4`},
		{"POST", "/v1/tables/shop.t:rescale", `{"buckets":8}`, 200, `"layout_epoch":"1"`},
		{"POST", "/v1/tables/shop.t/partitions", `{"specs":[{"values":[{"key":"dt","value":"x"}]}]}`, 200, `"bucket_count":8`},
		{"GET", "/v1/tables/shop.t/partitions/x", "", 200, `"name":"x"`},
		{"GET", "/v1/tables/shop.t/layout?names=x", "", 200, `"servers":[]`},
		{"GET", "/v1/tables/shop.x", "", 404, `{"error":{"code":"TABLE_NOT_EXIST"`},
		{"PUT", "/v1/kv/a%2Fb/c", `{"value":"djE="}`, 200, `"version":"1"`},
		{"GET", "/v1/kv/a/b/c", "", 200, `"value":"djE="`},
		{"GET", "/v1/cluster", "", 200, `"node_id":"n1"`},
		{"GET", "/v1/databases/%ff%fe", "", 400, `{"error":{"code":"INVALID_ARGUMENT"`},
		{"PUT", "/v1/kv/%ff", `{"value":"djE="}`, 400, `{"error":{"code":"INVALID_ARGUMENT"`},
		{"GET", "/nothing", "", 404, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"PUT", "/v1/databases", "", 405, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"GET", "//v1/databases", "", 404, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"PUT", "/v1/kv/two//slashes", `{"value":"djE="}`, 200, `"version":"1"`},
		{"GET", "/v1/kv/two//slashes", "", 200, `"key":"two//slashes"`},
		{"PUT", "/v1/kv/up/../down", `{"value":"djE="}`, 200, `"version":"1"`},
		{"GET", "/v1/kv/up%2F..%2Fdown", "", 200, `"key":"up/../down"`},
		{"DELETE", "/livez", "", 405, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"POST", "/metrics", "", 405, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"HEAD", "/readyz", "", 200, ""},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200, "goroutine profile"},
		{"GET", "/debug/pprof/nothing", "", 404, `{"error":{"code":"UNKNOWN_COMMAND"`},
		{"GET", "/metrics", "", 200, `stave_server_requests_total{code="DATABASE_ALREADY_EXIST",method="Catalog/CreateDatabase",node="n1"} 1`},
		{"GET", "/debug/pprof/cmdline", "", 200, ""},
	} {
		code, text, _ := w.do(tt.method, tt.path, tt.body)
		if code != tt.code || !strings.Contains(squeeze(text), tt.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", tt.method, tt.path, code, text, tt.code, tt.want)
		}
	}
	if _, _, header := w.do("DELETE", "/livez", ""); header.Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE /livez allows %q", header.Get("Allow"))
	}
	code, text, _ := w.do("POST", "/v1/databases", strings.Repeat(" ", bodyBytes+1))
	if code != http.StatusRequestEntityTooLarge || !strings.Contains(text, "TOO_LARGE") {
		t.Errorf("a body above the limit: %d %s", code, text)
	}
}

// A body above the limit is answered and not cut off, whether its length is told
// or not and whatever it begins with; nothing of it is done.
func TestHTTP_LongBodies(t *testing.T) {
	w, _ := newWeb(t)
	text := `{"value":"` + strings.Repeat("A", 8*bodyBytes) + `"}`
	for name, body := range map[string]io.Reader{"with length": strings.NewReader(text), "chunked": io.MultiReader(strings.NewReader(text))} {
		code, answer, header := w.send("PUT", "/v1/kv/long", body)
		if code != http.StatusRequestEntityTooLarge || !strings.Contains(answer, `"TOO_LARGE"`) || !strings.Contains(answer, "4194304") {
			t.Errorf("%s: %d %s", name, code, answer)
		}
		if got := header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: content type %q", name, got)
		}
	}
	if code, answer, _ := w.do("GET", "/v1/kv/long", ""); code != 404 {
		t.Errorf("after the refusals: %d %s", code, answer)
	}
}

// squeeze takes out the spaces that protojson puts in at random.
func squeeze(s string) string {
	return strings.NewReplacer(`": "`, `":"`, `":  `, `":`, `": `, `":`, `, "`, `,"`).Replace(s)
}

// A stream is one JSON document per line, and an error is the last line.
func TestHTTP_Streams(t *testing.T) {
	w, _ := newWeb(t)
	for _, name := range []string{"a", "b"} {
		w.do("POST", "/v1/databases", `{"name":"`+name+`"}`)
	}
	code, text, header := w.do("GET", "/v1/databases", "")
	if code != 200 || header.Get("Content-Type") != "application/x-ndjson" || strings.Count(text, "\n") != 1 {
		t.Errorf("list: %d %s %q", code, header, text)
	}
	var msg struct{ Databases []struct{ Name string } }
	if err := json.Unmarshal([]byte(text), &msg); err != nil || len(msg.Databases) != 2 {
		t.Errorf("list: %s: %v", text, err)
	}
	_, cluster, _ := w.do("GET", "/v1/cluster", "")
	var status struct{ Header struct{ Revision string } }
	if err := json.Unmarshal([]byte(cluster), &status); err != nil {
		t.Fatal(err)
	}
	code, text, _ = w.do("GET", "/v1/watch?snapshot=true&filter.kinds=OBJECT_KIND_DATABASE&until_revision="+status.Header.Revision, "")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); code != 200 || len(lines) != 3 || !strings.Contains(lines[0], "hello") || !strings.Contains(lines[2], "bookmark") {
		t.Errorf("watch: %d %s", code, text)
	}
	code, text, _ = w.do("GET", "/v1/tables/a.b/partitions", "")
	if code != 404 || !strings.HasPrefix(text, `{"error":{"code":"TABLE_NOT_EXIST"`) {
		t.Errorf("refused list: %d %s", code, text)
	}
}
