// Package rookpods is the source of facts about the settings of Rook's pods. EKCO may not watch these objects. It reads
// each at intervals, and at once after it has changed one, but only while there is a CephCluster.
package rookpods

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Machine is the name of the machine for these facts.
const Machine = "rook-pods"

// Options configures [New]. Each field that ends in Off is the setting that switches a part off, or "".
type Options struct {
	Pods *rook.Pods
	// Filesystem is the name of the CephFilesystem; "" if there is none.
	Filesystem                  string
	CSIOff, MDSOff, PriorityOff string
	// Known returns the facts in the journal about subjects of these kinds.
	Known func(kinds ...string) map[journal.Subject]journal.RookPodsFacts
}

// New returns the sources. It omits sources that have nothing to read and no known facts.
func New(o Options) []observers.Source {
	in := &installed{pods: o.Pods}
	sources := []observers.Source{o.one(in, journal.RookOperatorConfig, o.CSIOff)}
	if o.Filesystem != "" {
		sources = append(sources, o.one(in, journal.RookMDS(o.Filesystem), o.MDSOff))
	}
	known := o.Known(journal.KindDeployment, journal.KindDaemonSet)
	if o.PriorityOff == "" || len(known) > 0 {
		sources = append(sources, o.workloads(in, known))
	}
	return sources
}

// allowance limits the records about a workload that a client changes again and again.
var allowance = observers.Allowance{Burst: 6, Every: 10 * time.Minute}

func (o Options) one(in *installed, of journal.Subject, off string) observers.Source {
	known := map[string]journal.RookPodsFacts{}
	for subject, facts := range o.Known(of.Kind) {
		known[subject.Name] = facts
	}
	return observers.PollOne(observers.PolledOne[journal.RookPodsFacts]{
		Machine: Machine, Subject: of, Known: known, Off: off,
		UID: func(facts journal.RookPodsFacts) string { return facts.UID },
		Get: func(ctx context.Context) (journal.RookPodsFacts, error) {
			found, err := in.look(ctx)
			if err != nil {
				return journal.RookPodsFacts{}, err
			}
			return o.Pods.ReadIn(ctx, found, of)
		},
	})
}

// workloads is the source of all workloads that need a priority class.
func (o Options) workloads(in *installed, known map[journal.Subject]journal.RookPodsFacts) observers.Source {
	source := observers.Polled[workload]{
		Noun: noun(o.PriorityOff, known), Name: "workloads of Rook", OfAPI: o.PriorityOff == "",
		Ask: func(ctx context.Context) (map[string]workload, error) {
			switch _, err := in.look(ctx); {
			case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
				return nil, nil // without Rook there are no workloads
			case err != nil:
				return nil, err
			}
			found, err := o.Pods.Workloads(ctx)
			return keyed(found), err
		},
	}
	if o.PriorityOff != "" {
		source.Ask = func(context.Context) (map[string]workload, error) { return nil, nil }
	}
	return observers.Poll(source)
}

// workload is a workload with its facts.
type workload struct {
	subject journal.Subject
	facts   journal.RookPodsFacts
}

func keyed(found map[journal.Subject]journal.RookPodsFacts) map[string]workload {
	all := make(map[string]workload, len(found))
	for subject, facts := range found {
		subject.UID = facts.UID
		all[subject.Kind+" "+subject.Name] = workload{subject, facts}
	}
	return all
}

func noun(off string, known map[journal.Subject]journal.RookPodsFacts) observers.Noun[workload] {
	return observers.Noun[workload]{
		Observed: func(_ string, w workload) journal.Draft {
			facts, err := json.Marshal(w.facts)
			if err != nil {
				panic(err) // facts can always be encoded
			}
			return draft(journal.TypeThingObserved, w, journal.ThingObserved{Machine: Machine, Facts: facts})
		},
		Gone: func(_ string, w workload, reason string) journal.Draft {
			if off != "" {
				reason = off
			}
			return draft(journal.TypeThingGone, w, journal.ThingGone{Machine: Machine, Reason: reason})
		},
		Equal:     func(a, b workload) bool { return reflect.DeepEqual(a.facts, b.facts) },
		UID:       func(w workload) string { return w.subject.UID },
		Allowance: allowance,
		Known: func(yield func(string, workload) bool) {
			for key, w := range keyed(known) {
				if !yield(key, w) {
					return
				}
			}
		},
	}
}

func draft(event journal.Type, w workload, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: "observer/" + Machine, Subject: w.subject, Payload: payload}
}

// rookStateMaxAge is how long the state of Rook is reused, so that sources with an interval of one minute share one read.
const rookStateMaxAge = 30 * time.Second

// installed lets the sources share one read of the state of Rook.
type installed struct {
	pods *rook.Pods

	mu    sync.Mutex
	found rook.Installed
	err   error
	at    time.Time
}

// look returns the state of Rook. It does not store an error for reuse.
func (i *installed) look(ctx context.Context) (rook.Installed, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.at.IsZero() && time.Since(i.at) < rookStateMaxAge {
		return i.found, i.err
	}
	found, err := i.pods.Installed(ctx)
	i.at = time.Time{}
	if sentinel := kube.Sentinel(err); err == nil || errors.Is(sentinel, kube.ErrNotFound) || errors.Is(sentinel, kube.ErrForbidden) {
		i.found, i.err, i.at = found, err, time.Now()
	}
	return found, err
}
