package main

import (
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// job is what the harness asked for; it ends the process when that is done.
type job struct {
	name    string
	count   int
	workers int
	phase   string
	began   time.Time

	lock      sync.Mutex
	seen      map[string]struct{}
	ready     time.Time
	latencies []float64
}

func newJob(name string) *job {
	count := number("BENCH_COUNT")
	return &job{
		name:    name,
		count:   count,
		workers: number("BENCH_WORKERS"),
		phase:   os.Getenv("BENCH_PHASE"),
		began:   time.Unix(0, int64(number("BENCH_BEGAN"))),
		seen:    make(map[string]struct{}, count),
	}
}

func number(variable string) int {
	value, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		log.Fatalf("expected a number in %s: %v", variable, err)
	}
	return value
}

// reconciled notes one reconcile; the last object's first one ends the job, or begins its second part.
func (j *job) reconciled(name, note string, begun time.Time) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if !j.ready.IsZero() {
		j.late(note, begun)
		return
	}
	j.seen[name] = struct{}{}
	if len(j.seen) < j.count {
		return
	}
	j.ready = time.Now()
	if j.name == "follow" {
		say("ready")
		go j.follow()
		return
	}
	j.report(j.ready)
}

// late notes how long after its update an object was reconciled; the time of the update is in the object.
func (j *job) late(note string, begun time.Time) {
	sent, err := strconv.ParseInt(strings.TrimSpace(note), 10, 64)
	if err == nil && sent > j.ready.UnixNano() {
		j.latencies = append(j.latencies, float64(begun.UnixNano()-sent)/1e6)
	}
}

// follow waits until the harness has nothing more to say.
func (j *job) follow() {
	io.Copy(io.Discard, os.Stdin)
	j.lock.Lock()
	defer j.lock.Unlock()
	j.report(j.ready)
}

func (j *job) report(end time.Time) {
	found := map[string]float64{
		"wall":    end.Sub(j.began).Seconds(),
		"count":   float64(len(j.seen)),
		"peak_mb": peakMB(),
	}
	if len(j.latencies) > 0 {
		slices.Sort(j.latencies)
		found["updates"] = float64(len(j.latencies))
		found["p50"] = j.percentile(50)
		found["p99"] = j.percentile(99)
	}
	say(found)
	os.Exit(0)
}

func (j *job) percentile(percent int) float64 {
	return j.latencies[(len(j.latencies)-1)*percent/100]
}
