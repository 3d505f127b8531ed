// Command peers does what the Agent Substrate control plane does to place a
// snapshot, so that a benchmark can hold a library against it. It answers JSON
// requests, one a line, on standard input: a long-lived process whose timed
// repeats can alternate with those of another contender. The requests:
//
//	{"op": "decoders"}                                     names, and the one in use
//	{"op": "decode", "text", "decoder", "calls"}           nanoseconds a call
//	{"op": "match", "worker", "snapshot", "calls"}         nanoseconds a call, the answer
//	{"op": "load", "path"}                                 a fleet, from JSON Lines
//	{"op": "count", "snapshot", "limit"}                   nanoseconds, how many restore
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"time"
)

var errNoCalls = errors.New("calls must be at least 1")

type Request struct {
	Op       string   `json:"op"`
	Text     string   `json:"text"`
	Decoder  string   `json:"decoder"`
	Calls    int      `json:"calls"`
	Worker   *Runtime `json:"worker"`
	Snapshot *Runtime `json:"snapshot"`
	Path     string   `json:"path"`
	Limit    int      `json:"limit"`
}

type Reply struct {
	Error    string   `json:"error,omitempty"`
	NS       float64  `json:"ns,omitempty"`
	Answer   bool     `json:"answer"`
	Count    int      `json:"count"`
	Decoders []string `json:"decoders,omitempty"`
	Fastest  string   `json:"fastest,omitempty"`
}

func main() {
	requests := json.NewDecoder(bufio.NewReader(os.Stdin))
	replies := json.NewEncoder(os.Stdout)
	var fleet []*Worker
	for {
		var request Request
		if err := requests.Decode(&request); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		reply, err := answer(&request, &fleet)
		if err != nil {
			reply = Reply{Error: err.Error()}
		}
		if err := replies.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

func answer(request *Request, fleet *[]*Worker) (Reply, error) {
	switch request.Op {
	case "decoders":
		names := make([]string, len(decoders))
		for i, decoder := range decoders {
			names[i] = decoder.Name
		}
		return Reply{Decoders: names, Fastest: fastest}, nil
	case "decode":
		for _, decoder := range decoders {
			if decoder.Name == request.Decoder {
				return timeDecode(request.Calls, decoder.Decode, request.Text)
			}
		}
		return Reply{}, fmt.Errorf("no decoder is called %q", request.Decoder)
	case "match":
		return timeMatch(request.Calls, request.Worker, request.Snapshot)
	case "load":
		workers, err := loadFleet(request.Path)
		*fleet = workers
		return Reply{Count: len(workers)}, err
	case "count":
		start := time.Now()
		count := Count(*fleet, request.Snapshot, request.Limit)
		return Reply{NS: float64(time.Since(start).Nanoseconds()), Count: count}, nil
	}
	return Reply{}, fmt.Errorf("op %q is not known", request.Op)
}

// timeMatch calls Matches directly, as the control plane does: nothing but the
// loop stands between the clock and the call.
func timeMatch(calls int, worker, snapshot *Runtime) (Reply, error) {
	if calls < 1 {
		return Reply{}, errNoCalls
	}
	yes := 0
	start := time.Now()
	for i := 0; i < calls; i++ {
		if Matches(worker, snapshot) {
			yes++
		}
	}
	return perCall(time.Since(start), calls, yes), nil
}

func timeDecode(calls int, decode func(string, *Mask) bool, text string) (Reply, error) {
	if calls < 1 {
		return Reply{}, errNoCalls
	}
	var mask Mask
	yes := 0
	start := time.Now()
	for i := 0; i < calls; i++ {
		mask = Mask{}
		if decode(text, &mask) {
			yes++
		}
	}
	return perCall(time.Since(start), calls, yes), nil
}

func perCall(elapsed time.Duration, calls, yes int) Reply {
	return Reply{NS: float64(elapsed.Nanoseconds()) / float64(calls), Answer: yes == calls}
}

// fleetLine is one worker of a JSON Lines file: each runtime is its attributes.
type fleetLine struct {
	Worker       string              `json:"worker"`
	SandboxClass string              `json:"sandboxClass"`
	Default      map[string]string   `json:"defaultRuntime"`
	Restorable   []map[string]string `json:"restorableRuntimes"`
}

func loadFleet(path string) ([]*Worker, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	var workers []*Worker
	for {
		var line fleetLine
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return workers, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: worker %d: %w", path, len(workers)+1, err)
		}
		worker := &Worker{ID: line.Worker, Default: runtimeOf(line.SandboxClass, line.Default)}
		for _, attributes := range line.Restorable {
			worker.Restorable = append(worker.Restorable, runtimeOf(line.SandboxClass, attributes))
		}
		workers = append(workers, worker)
	}
}

func runtimeOf(class string, values map[string]string) *Runtime {
	compat := &Compat{SchemaVersion: "v1"}
	for key, value := range values {
		compat.Attributes = append(compat.Attributes, &Attribute{Key: key, Value: value})
	}
	sort.Slice(compat.Attributes, func(i, j int) bool {
		return compat.Attributes[i].Key < compat.Attributes[j].Key
	})
	return &Runtime{SandboxClass: class, CompatVersion: compat}
}
