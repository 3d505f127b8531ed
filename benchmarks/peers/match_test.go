package main

import (
	"os"
	"path/filepath"
	"testing"
)

func identity(class, schema string, pairs ...string) *Runtime {
	compat := &Compat{SchemaVersion: schema}
	for i := 0; i < len(pairs); i += 2 {
		compat.Attributes = append(compat.Attributes, &Attribute{Key: pairs[i], Value: pairs[i+1]})
	}
	return &Runtime{SandboxClass: class, CompatVersion: compat}
}

func TestMatches(t *testing.T) {
	snapshot := identity("gvisor", "v1", "architecture", "amd64", "cpu_features", "5")
	for _, row := range []struct {
		name             string
		worker, snapshot *Runtime
		want             bool
	}{
		{"no snapshot", nil, nil, true},
		{"no worker", nil, snapshot, false},
		{"itself", snapshot, snapshot, true},
		{"class", identity("microvm", "v1", "architecture", "amd64", "cpu_features", "5"), snapshot, false},
		{"schema", identity("gvisor", "v2", "architecture", "amd64", "cpu_features", "5"), snapshot, false},
		{"value", identity("gvisor", "v1", "architecture", "arm64", "cpu_features", "5"), snapshot, false},
		{"missing key", identity("gvisor", "v1", "cpu_features", "5"), snapshot, false},
		{"order and more keys", identity("gvisor", "v1", "x", "y", "cpu_features", "5", "architecture", "amd64"), snapshot, true},
		{"superset", identity("gvisor", "v1", "architecture", "amd64", "cpu_features", "00f"), snapshot, true},
		{"subset", identity("gvisor", "v1", "architecture", "amd64", "cpu_features", "4"), snapshot, false},
		{"unreadable", identity("gvisor", "v1", "architecture", "amd64", "cpu_features", "0x5"), snapshot, false},
	} {
		if got := Matches(row.worker, row.snapshot); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestCountOverAFleet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.jsonl")
	lines := `{"worker": "a", "sandboxClass": "gvisor", "defaultRuntime": {"cpu_features": "3"}}
{"worker": "b", "sandboxClass": "gvisor", "defaultRuntime": {"cpu_features": "1"}, "restorableRuntimes": [{"cpu_features": "2"}]}
{"worker": "c", "sandboxClass": "gvisor", "defaultRuntime": {"cpu_features": "1"}}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	workers, err := loadFleet(path)
	if err != nil || len(workers) != 3 {
		t.Fatalf("%d workers, %v", len(workers), err)
	}
	snapshot := identity("gvisor", "v1", "cpu_features", "2")
	for limit, want := range map[int]int{0: 2, 1: 1, 100: 2} {
		if got := Count(workers, snapshot, limit); got != want {
			t.Errorf("limit %d: %d", limit, got)
		}
	}
}
