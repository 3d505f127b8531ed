package main

// What a worker and a snapshot carry. Entries are pointers, as in the messages
// that protobuf generates for the control plane.

type Attribute struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type Compat struct {
	SchemaVersion string       `json:"schemaVersion"`
	Attributes    []*Attribute `json:"attributes"`
}

type Runtime struct {
	SandboxClass  string  `json:"sandboxClass"`
	Name          string  `json:"name"`
	CompatVersion *Compat `json:"compatVersion"`
}

// Worker is one registered worker: the runtime of cold starts, and the others
// that it can still restore from.
type Worker struct {
	ID         string
	Default    *Runtime
	Restorable []*Runtime
}

const cpuFeatures = "cpu_features"

// Matches reports whether a worker's runtime can restore a snapshot. Without a
// snapshot runtime there is no constraint.
func Matches(worker, snapshot *Runtime) bool {
	if snapshot == nil {
		return true
	}
	if worker == nil || worker.SandboxClass != snapshot.SandboxClass {
		return false
	}
	return matchesCompat(worker.CompatVersion, snapshot.CompatVersion)
}

// matchesCompat scans the worker's attributes once for each of the snapshot's:
// there are at most 32, so that no map is worth its allocation.
func matchesCompat(worker, snapshot *Compat) bool {
	if worker == nil || snapshot == nil {
		return false
	}
	if worker.SchemaVersion == "" || worker.SchemaVersion != snapshot.SchemaVersion {
		return false
	}
	for _, wanted := range snapshot.Attributes {
		found := false
		for _, offered := range worker.Attributes {
			if offered.Key != wanted.Key {
				continue
			}
			if !satisfies(wanted.Key, offered.Value, wanted.Value) {
				return false
			}
			found = true
			break
		}
		if !found {
			return false
		}
	}
	return true
}

func satisfies(key, offered, wanted string) bool {
	if key != cpuFeatures {
		return offered == wanted
	}
	var have, need Mask
	return decode(wanted, &need) && decode(offered, &have) && need.within(&have)
}

// Restores reports whether any runtime of the worker matches.
func (w *Worker) Restores(snapshot *Runtime) bool {
	if Matches(w.Default, snapshot) {
		return true
	}
	for _, runtime := range w.Restorable {
		if Matches(runtime, snapshot) {
			return true
		}
	}
	return false
}

// Count counts the workers that can restore the snapshot, on one thread. It
// stops at `limit` of them; a limit of 0 is none.
func Count(workers []*Worker, snapshot *Runtime, limit int) int {
	count := 0
	for _, worker := range workers {
		if worker.Restores(snapshot) {
			count++
			if count == limit {
				break
			}
		}
	}
	return count
}
