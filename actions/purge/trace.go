package purge

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Traced is the result of a search for a node of which EKCO knows only the name.
type Traced struct {
	journal.NodeTraced
	// Places lists the places that were searched. A place that could not be searched is in the doubts instead.
	Places []string
	// Names lists other machines in these places, if nothing was found. The person may have meant one of them.
	Names []string
}

// Tracer searches for remaining data of nodes that EKCO never saw. It is safe for concurrent use.
type Tracer struct {
	log   *slog.Logger
	parts []remainsFinder
}

// remainsFinder is a part of a purge that can search for a node by its name.
type remainsFinder interface {
	// trace searches with the same code as capture, so that it finds exactly what a purge would remove. facts has only
	// the node's name.
	trace(ctx context.Context, record journal.ActionRecord, facts Facts) Traced
}

// NewTracer returns a tracer that searches all places from which a purge with the same options would remove something.
func NewTracer(api kube.API, log *slog.Logger, options ...Option) Tracer {
	tracer := Tracer{log: log}
	for _, part := range partsOf(api, options).ordered() {
		if tracing, ok := part.(remainsFinder); ok {
			tracer.parts = append(tracer.parts, tracing)
		}
	}
	return tracer
}

// nodeName matches valid names of Nodes. EKCO searches for no other names: the empty name, for example, would match
// some objects.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const (
	maxNodeName  = 253
	traceTimeout = time.Minute
)

// Trace searches all places in parallel for exactly this name, for at most one minute. It changes nothing. A place that
// does not answer is a doubt, not an error. maintainRook has the meaning of [journal.PurgeInput.MaintainRook].
func (t Tracer) Trace(ctx context.Context, name string, maintainRook *bool) Traced {
	if len(name) > maxNodeName || !nodeName.MatchString(name) {
		return Traced{NodeTraced: journal.NodeTraced{Doubts: []string{"no Node can have this name"}}}
	}
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	uid := journal.TracedUID(name)
	// Force makes the search report an etcd member that cannot be identified.
	record := journal.ActionRecord{
		Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject(name, uid),
		Request: journal.ActionRequested{
			Kind: journal.ActionPurgeNode, Manual: true, Force: true, Input: journal.PurgeInput{MaintainRook: maintainRook},
		},
	}
	results := make([]Traced, len(t.parts))
	var searches sync.WaitGroup
	for i, part := range t.parts {
		searches.Go(func() {
			results[i] = t.tracePart(ctx, part, record, Facts{Node: NodeIdentity{Name: name, UID: uid}})
		})
	}
	searches.Wait()
	var all Traced
	for _, result := range results {
		all.Found = append(all.Found, result.Found...)
		all.Doubts = append(all.Doubts, result.Doubts...)
		all.Places = append(all.Places, result.Places...)
		all.Names = append(all.Names, result.Names...)
	}
	return all
}

// tracePart calls the part's trace. It reports a panic as a place that could not be searched.
func (t Tracer) tracePart(ctx context.Context, part remainsFinder, record journal.ActionRecord, facts Facts) (traced Traced) {
	var failure error
	defer func() {
		if failure != nil {
			traced = Traced{NodeTraced: journal.NodeTraced{Doubts: []string{"a place could not be searched: " + failure.Error()}}}
		}
	}()
	defer actions.Catch(t.log.With("node", record.Subject.Name), "the search for remains of a node", &failure)
	return part.trace(ctx, record, facts)
}

// NodeWasSeen is the preflight that warns if EKCO never saw the node, and lists all that it found about the node. Only
// the purge of such a node has it.
const NodeWasSeen = "NodeWasSeen"

type nodeWasSeen struct{}

func (nodeWasSeen) Check(_ context.Context, record journal.ActionRecord) actions.Verdict {
	facts, err := factsOf(record)
	if err != nil {
		return actions.Hold(err.Error())
	}
	found := append(facts.Storage.removable(), facts.removableOfPrimary()...)
	if len(found) == 0 {
		found = []string{"nothing that EKCO would remove"}
	}
	reason := "EKCO never saw node " + facts.Node.Name + "; what is left of it: " + strings.Join(append(found, facts.Storage.doubts()...), "; ")
	return actions.Warn(reason + "; make sure that the name is right, and that the machine is off")
}
