// Package rook is the source of facts about Rook's storage. It polls, because EKCO has only "get" permission for Rook's
// custom resources, and Ceph has no watch. It also reads at once after EKCO has changed something. It reads Ceph when a
// pod of an OSD changes, and only while there is a CephCluster.
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

// Machine is the name of the machine for these facts.
const Machine = "rook"

// Options of [New].
type Options struct {
	Rook rook.Resources
	Ceph Ceph
	// OSDPods is the source of the OSDs' pods.
	OSDPods kube.Source
	// Pools lists the custom resources of the pools that EKCO manages.
	Pools []journal.Subject
	// Former lists the pools in the journal that are no longer in the configuration.
	Former []journal.Subject
	// Changes triggers reads after EKCO's changes of custom resources and of Ceph. It may be nil if EKCO changes
	// nothing.
	Changes *Changes
	// Known returns the facts in the journal of a subject, by name.
	Known func(journal.Subject) map[string]journal.RookFacts
	// CephInterval is the shortest interval of polling Ceph. The default is about the observers' PollInterval.
	CephInterval time.Duration
	// Off is the setting that switches all sources off, or "".
	Off string
}

// cephTimeout is longer than the timeout of a ceph command, so that EKCO gets the error of the command.
const cephTimeout = 20 * time.Second

// minReadInterval is the shortest time between two reads of a custom resource.
const minReadInterval = time.Second

// growthBurst is the number of changes of Ceph that are recorded at once. While Ceph gets OSDs and copies data, its
// state changes with nearly every read, and the next host must not wait for a minute.
const growthBurst = 60

// bootTime is how long an OSD may take from the start of its pod until Ceph reports the OSD as up. In between, the OSD
// opens its disk and catches up with the map. In this time EKCO reads Ceph at the interval bootReadInterval.
const (
	bootTime         = 30 * time.Second
	bootReadInterval = 5 * time.Second
)

// New returns a source for each custom resource. For Ceph it returns a source of facts, and a source that triggers the
// first one when OSDs start and stop. All except that trigger read at once after EKCO has changed something.
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
	asking.NotFromAPI, asking.Interval, asking.Timeout = true, pollInterval(options.CephInterval), cephTimeout
	asking.Allowance.Burst = growthBurst
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
		former.Off = cmp.Or(options.Off, "it is no longer in the configuration")
		resources = append(resources, former.source(of, nil))
	}
	if options.Changes != nil {
		options.Changes.Over(append(slices.Clone(resources), tells)...)
	}
	ofCeph = []observers.Source{tells}
	if options.Off == "" {
		ofCeph = append(ofCeph, observers.Trigger(observers.Triggering{
			Name: "OSD pods", From: options.OSDPods, Example: &corev1.Pod{}, Changed: tells.Look,
			Later: bootReadInterval, Times: int(bootTime / bootReadInterval),
		}))
	}
	return resources, ofCeph
}

// pollInterval returns the interval at which two polls are always at least often apart, although jitter may shorten the
// interval by a tenth.
func pollInterval(often time.Duration) time.Duration { return often + (often+8)/9 }

func (o Options) source(of journal.Subject, get func(context.Context) (journal.RookFacts, error)) observers.Source {
	polled := o.polled(of, o.Changes.steady(get))
	polled.Apart = minReadInterval
	return observers.PollOne(polled)
}

func (o Options) polled(of journal.Subject, get func(context.Context) (journal.RookFacts, error)) observers.PolledOne[journal.RookFacts] {
	return observers.PolledOne[journal.RookFacts]{
		Machine: Machine, Subject: of, Known: o.Known(of), Off: o.Off, Get: get,
		UID: func(facts journal.RookFacts) string { return facts.UID },
		// A client may change these settings at any rate, and an OSD may change its state at any rate.
		Allowance: observers.Allowance{Burst: 10, Every: time.Minute},
	}
}

// presence stores whether there is a CephCluster.
type presence struct {
	is      atomic.Int32
	changed func()
}

const (
	missing int32 = iota
	there
	// unseen means that EKCO may not read the CephCluster, so that its existence is unknown.
	unseen
)

// read stores the result of a read of the CephCluster. It ignores other failures.
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

// lacks returns the reason why EKCO does not ask Ceph, or nil.
func (p *presence) lacks() error {
	switch p.is.Load() {
	case missing:
		return fmt.Errorf("%w: there is no CephCluster %s", kube.ErrNotFound, journal.RookCluster.Name)
	case unseen:
		return fmt.Errorf("%w: EKCO may not read CephCluster %s", observers.ErrAbsent, journal.RookCluster.Name)
	}
	return nil
}
