package main

import (
	"strings"
	"testing"
)

// What is wrong with a command line is said with the field, the value and what is
// wanted, before any node is asked.
func TestBadInput_Usage(t *testing.T) {
	r := runner{endpoints: []string{"127.0.0.1:1"}}
	for _, tt := range []struct {
		line  string
		texts []string
	}{
		{"table rescale a.b --buckets 4294967296", []string{"--buckets", `"4294967296"`, "2147483647"}},
		{"table rescale a.b --buckets many", []string{"--buckets", `"many"`, "whole number"}},
		{"table rescale a.b --buckets 4 --expect-epoch -1", []string{"--expect-epoch", `"-1"`, "from 0"}},
		{"table rescale a.b --buckets 4 --no-propagate=maybe", []string{"--no-propagate", `"maybe"`, "true or false"}},
		{"tablet register 1 --listener h:1 --ttl 10", []string{"--ttl", `"10"`, "10s"}},
		{"tablet register x --listener h:1", []string{"server id", `"x"`, "0 to 2147483647"}},
		{"tablet tag 7 1", []string{"tag", `"7"`, "permanent-offline"}},
		{"cluster limits --partitions -1", []string{"--partitions", `"-1"`, "4294967295"}},
		{"cluster add n4", []string{`"n4"`, "ID=HOST:PORT"}},
		{"kv get a --timeout soon", []string{"--timeout", `"soon"`, "10s"}},
		{"kv get a --consistency exact", []string{"--consistency", `"exact"`, "linearizable", "at-least:REV"}},
		{"kv get a -o yaml", []string{"output", `"yaml"`, "table or json"}},
		{"kv get a --endpoints 127.0.0.1:70000", []string{"--endpoints", `"70000"`, "1 to 65535"}},
		{"kv get a --endpoints http://h:1", []string{"--endpoints", `"http://h:1"`, "host:port"}},
		{"watch --from x", []string{"--from", `"x"`, "number"}},
		{"partition create a.b dt", []string{`"dt"`, "KEY=VALUE"}},
		{"table create a.b --column a", []string{`"a"`, "NAME TYPE"}},
		{"kv get", []string{"1 argument", "got 0"}},
		{"tables", []string{`"tables"`, "table"}},
	} {
		r.fails(t, exitUsage, append(tt.texts, "USAGE"), strings.Fields(tt.line)...)
		json := r.run(t.Context(), append(strings.Fields(tt.line), "-o", "json")...)
		if !strings.Contains(tt.line, "-o ") && !strings.HasPrefix(json.errs, `{"error":{"code":"USAGE"`) {
			t.Errorf("%s -o json: %s", tt.line, json.errs)
		}
	}
}
