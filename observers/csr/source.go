package csr

import (
	"context"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Options of [New].
type Options struct {
	// Requests is the source of all requests to the signer.
	Requests kube.Source
	// Around reads the objects around requests. Each read must begin after since.
	Around func(ctx context.Context, since time.Time, asked ...journal.CSR) ([]journal.CSRAround, error)
	// Neighbours notices changes of Nodes. It may be nil.
	Neighbours *Neighbours
	// Known has the requests that have no decision according to the journal.
	Known []Known
	// Off is the setting that switches the source off, or "".
	Off string
}

// Source is the source of facts about requests without a decision.
type Source struct {
	options Options
	differ  *observers.Differ[recordedRequest]
	changed chan struct{}

	mu   sync.Mutex
	feed *observers.Feed
	// listed is true after a complete list was read.
	listed bool
	// pending has the requests without a decision, by UID. ended has the decisions about other requests.
	pending map[string]csr.Request
	ended   map[string]string
	// approved is, by requester, the creation time of the newest approved request.
	approved map[string]time.Time
	// nodeChanges counts the changes of Nodes.
	nodeChanges uint64
	porter      admission
	crowds      map[string]int
	allowance   observers.Allowance
	// withheld has the facts that are not recorded for now, by key.
	withheld map[string]withheldFacts

	// Only survey uses the fields below. around has the last read of the objects around the chosen requests, by UID.
	// looked is when that was, and movesSeen is the value of nodeChanges then. movedAt is the time of the last read
	// that a change of a Node caused.
	around          map[string]journal.CSRAround
	looked, movedAt time.Time
	movesSeen       uint64
}

var (
	_ observers.Source = (*Source)(nil)
	_ observers.Sink   = (*Source)(nil)
)

// New returns the source.
func New(options Options) *Source {
	s := &Source{
		options: options, changed: make(chan struct{}, 1), pending: make(map[string]csr.Request), ended: make(map[string]string),
		approved: make(map[string]time.Time), porter: admission{make(map[string][]entry)}, crowds: make(map[string]int),
		allowance: factsAllowance(), withheld: make(map[string]withheldFacts), around: make(map[string]journal.CSRAround),
	}
	s.differ = observers.NewDiffer(recordsFor, func(yield func(string, recordedRequest) bool) {
		for _, known := range options.Known {
			if !yield(keyOf(known.Subject), recordedOf(known.Subject, known.Facts)) {
				return
			}
		}
	}).InOrder()
	for _, known := range options.Known {
		if known.Facts.AtLeast > 0 {
			s.crowds[known.Facts.Asked.Requester] = known.Facts.AtLeast
		}
	}
	return s
}

// Name implements [observers.Source].
func (s *Source) Name() string { return "kubelet certificate requests" }

// Due implements [observers.Source].
func (s *Source) Due(at time.Time) observers.Batch { return s.differ.Due(at) }

// Look implements [observers.Source].
func (s *Source) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed != nil {
		s.feed.Look()
	}
	s.signal()
}

// nodesChanged triggers another read of the objects around the pending requests. Without pending requests it does
// nothing.
func (s *Source) nodesChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodeChanges++
	if len(s.pending) > 0 {
		s.signal()
	}
}

func (s *Source) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Example implements [observers.Sink].
func (s *Source) Example() runtime.Object { return &certificatesv1.CertificateSigningRequest{} }

// Seen implements [observers.Sink].
func (s *Source) Seen(obj runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.see(obj)
	s.signal()
}

// see stores a request. The caller must hold mu.
func (s *Source) see(obj runtime.Object) {
	object, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok || object.Spec.SignerName != csr.Signer {
		return
	}
	request := csr.Of(object)
	requester := request.Asked.Requester
	if request.Decision == csr.Pending {
		s.pending[request.UID] = request.WithoutObject()
		return
	}
	if request.Decision == csr.Approved && request.CreatedAt.After(s.approved[requester]) {
		s.approved[requester] = request.CreatedAt
	}
	delete(s.pending, request.UID)
	s.ended[request.UID] = string(request.Decision)
}

// Gone implements [observers.Sink].
func (s *Source) Gone(obj runtime.Object) {
	if object, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, string(object.UID))
		s.signal()
	}
}

// All implements [observers.Sink].
func (s *Source) All(objs []runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pending)
	clear(s.approved)
	for _, obj := range objs {
		s.see(obj)
	}
	s.listed = true
	s.signal()
}

// Run implements [observers.Source].
func (s *Source) Run(ctx context.Context, to *observers.Reporter) {
	s.differ.Report(to.Changed)
	if s.options.Off != "" {
		s.differ.Change(func(facts *compared) { endAll(facts, func(string) string { return s.options.Off }) })
		<-ctx.Done()
		return
	}
	var feeding sync.WaitGroup
	defer feeding.Wait()
	feed := to.Feed(s.Name(), s.options.Requests, s)
	s.mu.Lock()
	s.feed = feed
	s.mu.Unlock()
	if s.options.Neighbours != nil {
		s.options.Neighbours.setChanged(s.nodesChanged)
	}
	feeding.Go(func() { feed.Run(ctx) })
	s.survey(ctx)
}
