package rookpods

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleCSIVersion refuses to set the resources of CSI pods while the version of Rook is unknown.
const RuleCSIVersion = "CSIVersion"

// Capability returns the capability for the settings of Rook's pods.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: newMachine(), Kinds: kinds(), Rules: rules()}
}

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{
		kind(journal.ActionSetCSIResources, RuleCSIVersion),
		// These actions restart Ceph's daemons, so no other action may change the storage at the same time.
		withStorageLock(kind(journal.ActionSpreadMDS)),
		withStorageLock(kind(journal.ActionSetPriorityClass)),
	}
}

func kind(name journal.ActionKind, rules ...string) fsm.ActionKind {
	return fsm.ActionKind{
		Name: name, Verb: string(name), Machine: Machine,
		Rules:       append([]string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff}, rules...),
		SwitchedOff: func(p fsm.Policy) string { return policy(p.Of[Machine]).offSetting(name) },
	}
}

func withStorageLock(kind fsm.ActionKind) fsm.ActionKind {
	kind.Domains = []string{journal.DomainStorage}
	return kind
}

func rules() []fsm.Rule {
	return []fsm.Rule{{
		Name:    RuleCSIVersion,
		Refuses: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool { return newestFacts(t).Unversioned != "" },
		Reason: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) string {
			return newestFacts(t).Unversioned + ", and only Rook 1.9 or later applies these resources to its CSI pods"
		},
		Lifted: fsm.Always("EKCO continues when the tag is a version"),
	}}
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Objects }

var _ fsm.Pausable = machine{}

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{journal.RookOperatorConfig}}}
}

func (machine) New(*fsm.Thing) any { return &thing{} }

func (m machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "Settings of Rook's pods",
		About: "ConfigMap `rook-ceph/rook-ceph-operator-config`; the MDS of the CephFilesystem `ceph_filesystem`, by the filesystem's\n" +
			"UID after `mds-of-`; and, if `rook_priority_class` is set, the Deployments of Ceph's daemons and the DaemonSet of Rook's agent.",
		Initial: string(InStep), Normal: fsm.Names(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Changing), To: string(Behind), When: "it differs from what the settings and the number of nodes require", Report: fsm.ReportReason("it differs from what the settings and the number of nodes require")},
			{Event: "change", From: fsm.Names(Behind, InStep), To: string(Changing), When: "an action about it is open", Report: fsm.ReportReason("it is being changed")},
			{Event: "reached", From: fsm.Names(Behind, Changing), To: string(InStep), When: "it needs no change", Report: fsm.ReportReason("it needs no change")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Changing), To: string(Removed), When: "the object is deleted, or the settings exclude it", Report: m.ReportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "the object exists again, and the settings include it", Report: fsm.ReportReason("it is back")},
		},
	}
}

func (m machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	if err := m.Objects.Observed(t, e, facts); err != nil {
		return err
	}
	of(t).SeenAt = e.Time
	return nil
}

// Ended implements [fsm.Machine]. It stores the facts after the action's change, even if the action then failed. These
// facts do not count if EKCO has observed newer facts since, because another client may have changed the thing.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	set := rec.Steps[journal.StepSetRookPods]
	of(t).Made = of(t).Object.Made(set) && !of(t).SeenAt.After(set.DoneAt)
	return true
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	_, behind := wantedChange(t, w)
	switch {
	case t.GoneSeq != 0:
		return Removed
	case isOpen(t, w):
		return Changing
	case behind:
		return Behind
	}
	return InStep
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	asked, is := wantedChange(t, w)
	if !is || isOpen(t, w) {
		return
	}
	kind := kindOf(t.Subject)
	if due, may := t.RepeatDue(kind, w.Policy, fsm.RetryAfter); may {
		want(fsm.Want{Kind: kind, Due: due, Rank: t.Since, Change: &asked.change})
	}
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	asked, _ := wantedChange(t, w)
	return journal.ActionRequested{Reason: asked.why, Input: asked.input}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An action that has begun is not obsolete, because its own effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.RookPodsInput](rec.Request)
	if err == nil && t.Exists() && len(rec.Steps) == 0 && input.Lacks(t.Kind, newestFacts(t)) == "" {
		return "nothing is left to change"
	}
	return ""
}

// Outdated implements [fsm.Machine]. An action that has not begun ends if the nodes or settings no longer require it.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	input, err := journal.InputOf[journal.RookPodsInput](rec.Request)
	if err != nil || len(rec.Steps) > 0 || policy(w.PolicyOf(Machine)).offSetting(rec.Kind) != "" {
		return ""
	}
	present, ready := w.Count(nodes)
	if t.Kind == journal.KindCephMDS {
		present = ready
	}
	class := policy(w.PolicyOf(Machine)).Class
	switch {
	case present < input.Nodes:
		return fmt.Sprintf("it needs %d nodes, but there are %d", input.Nodes, present)
	case input.Class != "" && input.Class != class:
		return "rook_priority_class is now " + class
	}
	return ""
}

func (machine) Details(t *fsm.Thing, _ *fsm.World) []string {
	facts := newestFacts(t)
	switch kindOf(t.Subject) {
	case journal.ActionSetCSIResources:
		return detailsOfCSI(facts)
	case journal.ActionSpreadMDS:
		return []string{mdsText(facts)}
	}
	if facts.Priority == "" {
		return []string{"no priority class"}
	}
	return []string{"priority class " + facts.Priority}
}

func detailsOfCSI(facts journal.RookPodsFacts) []string {
	switch {
	case facts.Unversioned != "":
		return []string{facts.Unversioned}
	case len(facts.Differing) > 0:
		return []string{"other resources than EKCO's: " + strings.Join(facts.Differing, ", ")}
	}
	return nil
}

// mdsText returns a text that says where the MDS run, and whether they have the placement for a single node.
func mdsText(facts journal.RookPodsFacts) string {
	where := "no MDS runs"
	if len(facts.Hosts) > 0 {
		where = "MDS run on " + strings.Join(facts.Hosts, ", ")
	}
	if facts.OneNode {
		where += ", placed as on a single node"
	}
	return where
}
