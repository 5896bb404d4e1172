package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/child"
)

// BenchmarkWholePurge measures "ekco purge-node" of dead primaries with one OSD
// and with three, with a real Ceph, real etcd members and a real control plane.
func BenchmarkWholePurge(b *testing.B) {
	each := 4 / binariesCompared()
	var victims []int
	sizes := []int{1, 3}
	for _, osds := range sizes {
		for range each * binariesCompared() {
			victims = append(victims, osds)
		}
	}
	w := startWholeCluster(b, victims)
	next := 0
	for _, osds := range sizes {
		compared(b, fmt.Sprintf("%dOSDs", osds), func(b *testing.B) {
			o := install(b, w.kubeconfig(b, nil), map[string]string{
				"certificates_dir": w.etcd.CertificatesDir(), "maintain_rook_storage_nodes": "true",
				"settling_time": "1s", "clear_dead_nodes": "false", "log_level": "debug",
			})
			operator := o.startReady(b)
			for b.Loop() {
				var purges []purgeTimes
				for range each {
					w.lose(b, next)
					purges = append(purges, timePurge(b, w, o, operator, victim(next)))
					next++
				}
				reportPurges(b, purges)
			}
			operator.Stop(grace)
		})
	}
}

// purgeTimes is where the time of a purge went.
type purgeTimes struct {
	// wall is from the start of the command to its end. nodeGone and memberGone
	// are until the record that Node and etcd member are gone.
	wall, nodeGone, memberGone time.Duration
	// calls is how long EKCO waited for ceph and etcd, the way there and back
	// included.
	calls    time.Duration
	cephRuns int
}

// timePurge purges a lost node.
func timePurge(b *testing.B, w *wholeCluster, o *installation, operator *child.Process, name string) (took purgeTimes) {
	b.Helper()
	eventually(b, time.Minute, "EKCO knows that "+name+" is lost", func() bool {
		status := run(b, o.ekco, "status", "--journal", o.journal, "--config", o.config)
		return strings.Contains(status, "Unknown") && strings.Contains(status, name)
	})
	logLoad(b)
	began := time.Now()
	output := run(b, o.ekco, "purge-node", name, "--journal", o.journal, "--config", o.config)
	ended := time.Now()
	took.wall = ended.Sub(began)

	processes := within(w.processes.all(b), began, ended)
	logged := readLoggedCalls(b, operator.Output.String())
	calls := within(slices.Concat(logged.ceph, logged.etcd), began, ended)
	took.calls, took.cephRuns = union(calls, began, ended), len(processes)
	for _, event := range o.events(b, journal.TypeStepDone) {
		payload, err := event.Decode()
		if err != nil {
			b.Fatal(err)
		}
		done, ok := payload.(*journal.StepDone)
		switch {
		case !ok || event.Subject.Name != name:
		case done.Step == "delete-node":
			took.nodeGone = event.Time.Sub(began)
		case done.Step == "remove-etcd-member":
			took.memberGone = event.Time.Sub(began)
		}
	}
	w.wantPurged(b, name)
	if took.cephRuns == 0 || took.nodeGone == 0 || took.memberGone == 0 {
		b.Fatalf("%d ceph processes, Node gone after %s, member after %s:\n%s", took.cephRuns, took.nodeGone, took.memberGone, output)
	}
	b.Logf("%s:\n%s%s", name, output, timeline(calls, processes, began))
	return took
}

// timeline shows the calls in order.
func timeline(calls, processes []interval, from time.Time) string {
	var text strings.Builder
	show := func(kind string, all []interval) {
		slices.SortFunc(all, func(x, y interval) int { return x.began.Compare(y.began) })
		for _, call := range all {
			fmt.Fprintf(&text, "%7.3f s +%.3f s  %s: %s\n", call.began.Sub(from).Seconds(), call.ended.Sub(call.began).Seconds(), kind, call.what)
		}
	}
	show("call", calls)
	show("process", processes)
	return text.String()
}

// reportPurges reports medians.
func reportPurges(b *testing.B, purges []purgeTimes) {
	b.Helper()
	median := func(of func(purgeTimes) time.Duration) float64 {
		var all []time.Duration
		for _, p := range purges {
			all = append(all, of(p))
		}
		return milli(spreadOf(all).median)
	}
	b.ReportMetric(median(func(p purgeTimes) time.Duration { return p.wall }), "wall-ms")
	b.ReportMetric(median(func(p purgeTimes) time.Duration { return p.calls }), "calls-ms")
	b.ReportMetric(median(func(p purgeTimes) time.Duration { return p.wall - p.calls }), "own-ms")
	b.ReportMetric(median(func(p purgeTimes) time.Duration { return p.nodeGone }), "node-gone-ms")
	b.ReportMetric(median(func(p purgeTimes) time.Duration { return p.memberGone }), "member-gone-ms")
	b.ReportMetric(float64(purges[len(purges)-1].cephRuns), "ceph-runs")
}
