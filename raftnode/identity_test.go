package raftnode

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sampleIdentity() identity {
	return identity{
		Format: identityFormat, Node: "n1", Directory: "0123456789abcdef", Cluster: "fedcba9876543210", LogStore: LogStoreWAL,
		Initial: map[string]string{"n1": "0123456789abcdef", "n2": "1123456789abcdef"}, Started: true, Level: 1,
	}
}

// The bytes of an identity file are frozen.
func TestIdentity_Golden(t *testing.T) {
	file := filepath.Join("..", "testdata", "golden", "identity-v1.json")
	got, err := sampleIdentity().encode()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("identity is\n%s\nwant\n%s", got, want)
	}
	back, err := decodeIdentity(want)
	if err != nil || back.Directory != sampleIdentity().Directory || back.Initial["n2"] != "1123456789abcdef" {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

// No byte of an identity file can change, go or come unnoticed, and the node says
// which file it is.
func TestOpen_DamagedIdentity(t *testing.T) {
	good, err := sampleIdentity().encode()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	refused := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, identityFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Open(t.Context(), Config{ID: "n1", Dir: dir, RaftAddr: "127.0.0.1:1"})
		if err == nil {
			_ = n.Close()
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), identityFile) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if _, err := decodeIdentity(bad); !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d, bit %d: %v", i, bit, err)
			}
		}
		if _, err := decodeIdentity(good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	refused("flipped", bytes.Replace(good, []byte("1123"), []byte("1133"), 1))
	refused("without its sum", bytes.Replace(good, []byte(`"crc32c"`), []byte(`"crc33c"`), 1))
	refused("unknown field", bytes.Replace(good, []byte(`"node_id"`), []byte("\"colour\": \"red\",\n  \"node_id\""), 1))
	refused("more behind it", append(bytes.Clone(good), '\n'))
	refused("empty", nil)
}
