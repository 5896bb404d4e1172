// Package rook is where facts of Rook's storage come from. Of its custom resources only "get"
// is granted, and Ceph has nothing to watch: each is asked now and then, and at once when EKCO
// has changed something; Ceph also when a pod of an OSD changes. It is asked only while there
// is a CephCluster.
package rook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Machine is the name of the machine that the facts are for.
const Machine = "rook"

// Options of [New].
type Options struct {
	Rook rook.Resources
	Ceph Ceph
	// OSDPods are the pods of the OSDs.
	OSDPods kube.Source
	// Pools are the custom resources with pools that EKCO looks after.
	Pools []journal.Subject
	// Former are those that the journal has, and the configuration has not.
	Former []journal.Subject
	// Changes are told of what EKCO changes of the custom resources, and by command of Ceph; nil where it changes nothing.
	Changes *Changes
	// Known returns what the journal has of a subject, by its name.
	Known func(journal.Subject) map[string]journal.RookFacts
	// CephInterval is how long Ceph is not asked at rest at least; default is about the
	// observers' PollInterval.
	CephInterval time.Duration
	// Off, unless empty, says which setting keeps EKCO from looking at all.
	Off string
}

// cephTimeout is longer than a command of ceph may take, so that it is the command that says why
// there is no answer.
const cephTimeout = 20 * time.Second

// apart is how far apart looks at a custom resource are at least.
const apart = time.Second

// whileGrowing is how often at once the journal is told of Ceph: as it gets OSDs, and copies are
// made, what it says of itself changes with nearly every look, and the next host is not to wait for
// a minute.
const whileGrowing = 60

// bootTime is how long an OSD may take from when its pod runs until Ceph calls it up: it opens its
// disk, and catches up with the map. Until then it is looked for every bootLooks.
const (
	bootTime  = 30 * time.Second
	bootLooks = 5 * time.Second
)

// New returns a source of each custom resource; and one of Ceph, with one that has it asked when
// OSDs come and go. All but the pods are asked when EKCO has changed something.
func New(options Options) (resources, ofCeph []observers.Source) {
	p := &presence{}
	if len(options.Known(journal.RookCluster)) > 0 {
		p.is.Store(there)
	}
	asking := options.polled(journal.RookCeph, func(ctx context.Context) (journal.RookFacts, error) {
		if err := p.lacks(); err != nil {
			return journal.RookFacts{}, fmt.Errorf("ask Ceph: %w", err)
		}
		return askCeph(ctx, options.Ceph)
	})
	asking.Beyond, asking.Interval, asking.Timeout = true, atMost(options.CephInterval), cephTimeout
	asking.Allowance.Burst = whileGrowing
	tells := observers.PollOne(asking)
	p.changed = tells.Look
	resources = []observers.Source{options.source(journal.RookCluster, func(ctx context.Context) (journal.RookFacts, error) {
		facts, err := options.Rook.ReadResource(ctx, journal.RookCluster)
		p.read(err)
		return facts, err
	})}
	for _, of := range options.Pools {
		resources = append(resources, options.source(of, func(ctx context.Context) (journal.RookFacts, error) {
			return options.Rook.ReadResource(ctx, of)
		}))
	}
	for _, of := range options.Former {
		former := options
		former.Off = cmp.Or(options.Off, "it is not among the pools of the configuration any more")
		resources = append(resources, former.source(of, nil))
	}
	if options.Changes != nil {
		options.Changes.Over(append(slices.Clone(resources), tells)...)
	}
	ofCeph = []observers.Source{tells}
	if options.Off == "" {
		ofCeph = append(ofCeph, observers.Trigger(observers.Triggering{
			Name: "OSD pods", From: options.OSDPods, Example: &corev1.Pod{}, Changed: tells.Look,
			Later: bootLooks, Times: int(bootTime / bootLooks),
		}))
	}
	return resources, ofCeph
}

// atMost returns the interval of a poll, which may come a tenth early, that is never shorter.
func atMost(often time.Duration) time.Duration { return often + (often+8)/9 }

func (o Options) source(of journal.Subject, get func(context.Context) (journal.RookFacts, error)) observers.Source {
	polled := o.polled(of, o.Changes.steady(get))
	polled.Apart = apart
	return observers.PollOne(polled)
}

func (o Options) polled(of journal.Subject, get func(context.Context) (journal.RookFacts, error)) observers.PolledOne[journal.RookFacts] {
	return observers.PolledOne[journal.RookFacts]{
		Machine: Machine, Subject: of, Known: o.Known(of), Off: o.Off, Get: get,
		UID: func(facts journal.RookFacts) string { return facts.UID },
		// Somebody may change their mind as often as they like, and so may an OSD.
		Allowance: observers.Allowance{Burst: 10, Every: time.Minute},
	}
}

// presence is whether there is a CephCluster.
type presence struct {
	is      atomic.Int32
	changed func()
}

const (
	missing int32 = iota
	there
	// unseen: EKCO may not look, which says nothing of what there is.
	unseen
)

// read takes over what a look at the CephCluster came to. Any other failure says nothing.
func (p *presence) read(err error) {
	now := there
	switch sentinel := kube.Sentinel(err); {
	case err == nil:
	case errors.Is(sentinel, kube.ErrNotFound):
		now = missing
	case errors.Is(sentinel, kube.ErrForbidden):
		now = unseen
	default:
		return
	}
	if p.is.Swap(now) != now {
		p.changed()
	}
}

// lacks says why Ceph is not to be asked.
func (p *presence) lacks() error {
	switch p.is.Load() {
	case missing:
		return fmt.Errorf("%w: there is no CephCluster %s", kube.ErrNotFound, journal.RookCluster.Name)
	case unseen:
		return fmt.Errorf("%w: CephCluster %s may not be read", observers.ErrAbsent, journal.RookCluster.Name)
	}
	return nil
}
