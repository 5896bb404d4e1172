package certificates

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	tasks "github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The preflights of actions on primaries.
const (
	// AnotherAPIServer requires that the API servers of all other primaries answer before EKCO restarts an API server.
	// Those of lost nodes need not answer; only if all other primaries are lost, one of them must answer. A person can
	// override this preflight. It does not apply to an API server with an expired certificate.
	AnotherAPIServer = "AnotherAPIServer"
	// ControlPlaneRests holds a renewal after a failed attempt, with a growing backoff, because each attempt may
	// restart an API server. It also holds a renewal while EKCO's clock differs too much from the API server's.
	ControlPlaneRests = "ControlPlaneRests"
)

// ControlPlaneDomain is the lock that excludes other actions on control planes.
const ControlPlaneDomain = "control-plane"

// RotateTask is the name of the host task that renews certificates, as in earlier versions of EKCO.
const RotateTask = "rotate-certs"

const (
	lookLimit = 30 * time.Second
	// RotatePatience is how long a component may take to run again; kubeadm's startup probes allow 4 minutes.
	// rotateLimit is enough for the worst case: the API server, and after it the two other components, do not run with
	// the new certificates within MaxPatience, nor with the old ones within a third of that.
	RotatePatience = 5 * time.Minute
	rotateLimit    = 3*primary.MaxPatience + time.Minute
	// proofTime is how long it may take until all effects are visible. An API server reads its certificate again once a
	// minute.
	proofTime   = 2 * time.Minute
	noteTimeout = 30 * time.Second
)

// Servers checks the effects of a renewal from outside.
type Servers interface {
	// Primaries returns the nodes with a control plane, by name.
	Primaries(ctx context.Context) (map[string]primaries.Server, error)
	// Answers returns an error unless the API server at the address reports that it is ready.
	Answers(ctx context.Context, address string) error
	// Serves returns the certificate that a server presents at the address.
	Serves(ctx context.Context, address string, port int) (journal.Certificate, error)
	// Component returns what the API server knows about a component's pod on a node.
	Component(ctx context.Context, name, node string) (primaries.Component, error)
}

// Attempts records the time of EKCO's last check of certificates, for other programs.
type Attempts interface {
	// Attempted reports whether a check since the given time is recorded.
	Attempted(ctx context.Context, since time.Time) (bool, error)
	Note(ctx context.Context, at time.Time) error
}

// Primaries has the dependencies of the actions on control planes.
type Primaries struct {
	Tasks    *tasks.Tasks
	Servers  Servers
	Attempts Attempts
	// Image is EKCO's image. Look and Rotate are the arguments of the two tasks, including the TTL.
	Image        string
	Look, Rotate []string
	// Clock returns an error if EKCO's clock and the API server's clock are far apart.
	Clock func() error
	// Seen is called with the certificates that a task found on the node with this UID, at some time after since.
	Seen func(uid string, found journal.CertificatesOnPrimary, since time.Time)
}

// OfPrimaries returns the actions.
func OfPrimaries(p Primaries) []actions.Definition {
	look := hosttask.Work{Tasks: p.Tasks, Does: journal.StepLookAtCertificates, Partial: true}
	rotate := hosttask.Work{Tasks: p.Tasks, Does: journal.StepRenewControlPlane, MissingEffect: p.missingEffects, Read: read[journal.ControlPlaneRenewed]}
	lookSteps := look.Steps()
	looking := lookSteps[journal.StepLookAtCertificates]
	looking.Step = reportFindings{looking.Step, p.Seen}
	lookSteps[journal.StepLookAtCertificates] = looking
	lookSteps[journal.StepNoteAttempt] = actions.StepDef{Step: noteAttempt{p.Attempts}}
	rotateSteps := rotate.Steps()
	rotating := rotateSteps[journal.StepRenewControlPlane]
	rotating.Step = currentImage{rotating.Step, p}
	rotateSteps[journal.StepRenewControlPlane] = rotating
	return []actions.Definition{
		{Kind: journal.ActionLookAtCertificates, Noun: "look", Expendable: true, Steps: lookSteps, Plan: p.planLook(look)},
		{
			Kind: journal.ActionRenewControlPlane, Noun: "renewal", AskedLast: []string{AnotherAPIServer}, Expendable: true, RetriesStalled: true, Partial: true, Steps: rotateSteps, Plan: p.planRotate(rotate),
			Preflights: map[string]actions.Preflight{
				AnotherAPIServer:  actions.PreflightFunc(p.requireOthersAnswer),
				ControlPlaneRests: actions.PreflightFunc(p.holdForBackoff),
			},
		},
	}
}

// read checks and returns the result of a program.
func read[T any](result json.RawMessage) (json.RawMessage, error) {
	var left T
	if err := json.Unmarshal(result, &left); err != nil {
		return nil, fmt.Errorf("read the result of the program: %w", err)
	}
	return result, nil
}

// etc is the directory of the files, both on the host and in the task's pod.
const etc = "/etc/kubernetes"

func (p Primaries) planLook(work hosttask.Work) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(_ context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
		task, err := p.task(record, "read-certs", p.Look, lookLimit)
		if err != nil {
			return journal.Plan{}, err
		}
		task.Paths = []tasks.Path{{Host: etc, At: etc, Type: "Directory"}}
		_, last, err := work.Plan(&plan, task, journal.PlannedStep{Domains: actions.NoDomains})
		plan.Steps = append(plan.Steps, journal.PlannedStep{
			ID: journal.StepNoteAttempt, Does: journal.StepNoteAttempt, After: []string{last},
			Timeout: journal.Duration(noteTimeout), Domains: actions.NoDomains,
		})
		return plan, err
	}
}

func (p Primaries) planRotate(work hosttask.Work) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(_ context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
		task, err := p.rotateTask(record)
		if err != nil {
			return journal.Plan{}, err
		}
		if plan.Facts, err = json.Marshal(record.Request.Input); err != nil {
			return journal.Plan{}, fmt.Errorf("record which primary it is: %w", err)
		}
		_, _, err = work.Plan(&plan, task, journal.PlannedStep{
			Domains: []string{ControlPlaneDomain}, Preflights: []string{ControlPlaneRests, AnotherAPIServer},
		})
		plan.Steps[0].Timeout += journal.Duration(proofTime)
		return plan, err
	}
}

func (p Primaries) rotateTask(record journal.ActionRecord) (tasks.Task, error) {
	task, err := p.task(record, RotateTask, p.Rotate, rotateLimit)
	task.HostNetwork = true // some components listen only on localhost
	// kURL gives admin.conf to a group of administrators. The task needs this capability to give the new file the same
	// group.
	task.Capabilities = []string{"CHOWN"}
	task.Paths = []tasks.Path{
		{Host: etc, At: etc, Type: "Directory", Write: true},
		{Host: "/var/log/pods", At: "/var/log/pods", Type: "Directory"},
	}
	return task, err
}

func (p Primaries) task(record journal.ActionRecord, name string, args []string, limit time.Duration) (tasks.Task, error) {
	node, is := journal.ControlPlaneOn(record.Subject)
	if !is {
		return tasks.Task{}, fmt.Errorf("plan %s: %s %q does not identify the certificates of a node's control plane", record.Kind, record.Subject.Kind, record.Subject.Name)
	}
	input, err := journal.InputOf[journal.PrimaryInput](record.Request)
	return tasks.Task{
		Name: name, Node: node, NodeUID: input.UID, Image: p.Image, Args: args, Limit: journal.Duration(limit),
	}, err
}

// currentImage runs the image of this EKCO in place of the planned image. A stalled renewal may be retried long after
// an update, when nodes no longer have the planned image.
type currentImage struct {
	actions.Step
	p Primaries
}

func (c currentImage) with(step actions.StepContext) actions.StepContext {
	var input struct {
		Task tasks.Task `json:"task"`
		Of   string     `json:"of"`
	}
	task, err := c.p.rotateTask(step.Action)
	if err != nil || step.Input(&input) != nil {
		return step // the step itself reports the error
	}
	if time.Duration(step.Planned.Timeout) < task.Longest() {
		// The step of an earlier version may have a shorter timeout than this program needs: then use the planned
		// arguments and limit.
		task.Args, task.Limit = input.Task.Args, input.Task.Limit
	}
	input.Task = task
	if changed, err := json.Marshal(input); err == nil {
		step.Planned.Input = changed
	}
	return step
}

func (c currentImage) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	return c.Step.Do(ctx, c.with(step))
}

// Prove implements [actions.Step]. The time limit of the new task applies, too. If a task is lost while its node is not
// ready, the attempt counts as having made the node worse, because it is unknown what the program did.
func (c currentImage) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := c.Step.Prove(ctx, c.with(step))
	proof.Worse = proof.Worse || proof.Lost && c.p.notReadyReason(ctx, step.Action) != ""
	if err == nil && proof.Done {
		proof.Outputs, err = withFailed(proof.Outputs)
	}
	return proof, err
}

// withFailed adds the certificates that were not renewed to an outcome, so that the action ends as partial.
func withFailed(outputs json.RawMessage) (json.RawMessage, error) {
	var outcome hosttask.Outcome
	if err := json.Unmarshal(outputs, &outcome); err != nil || len(outcome.Result) == 0 {
		return outputs, err
	}
	var renewed journal.ControlPlaneRenewed
	if err := json.Unmarshal(outcome.Result, &renewed); err != nil {
		return nil, fmt.Errorf("read what was renewed: %w", err)
	}
	outcome.Missing = strings.Join(renewed.Failed, "; ")
	return json.Marshal(outcome)
}

// notReadyReason returns the reason why the node of an action is not ready. It returns "" if the node is ready, gone,
// or cannot be read.
func (p Primaries) notReadyReason(ctx context.Context, record journal.ActionRecord) string {
	name, _ := journal.ControlPlaneOn(record.Subject)
	input, err := journal.InputOf[journal.PrimaryInput](record.Request)
	if err == nil {
		err = p.Tasks.CheckNode(ctx, tasks.Task{Node: name, NodeUID: input.UID})
	}
	var node *tasks.NodeError
	if errors.As(err, &node) && !node.Gone {
		return node.Error()
	}
	return ""
}

// reportFindings calls seen with the result of the program.
type reportFindings struct {
	actions.Step
	seen func(uid string, found journal.CertificatesOnPrimary, since time.Time)
}

func (s reportFindings) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := s.Step.Prove(ctx, step)
	if err != nil || !proof.Done {
		return proof, err
	}
	var outcome hosttask.Outcome
	if err := json.Unmarshal(proof.Outputs, &outcome); err != nil || len(outcome.Result) == 0 {
		return proof, err // there is no result
	}
	var found journal.CertificatesOnPrimary
	if err := json.Unmarshal(outcome.Result, &found); err != nil {
		return actions.Proof{}, fmt.Errorf("read what the program found: %w", err)
	}
	input, err := journal.InputOf[journal.PrimaryInput](step.Action.Request)
	if err == nil {
		s.seen(input.UID, found, step.Action.Steps[step.Planned.ID].StartedAt)
	}
	return proof, err
}

// noteAttempt records the time of a check. If EKCO may not write it, or after noteTries failures, the step counts as
// done, because an open action would block the next check.
type noteAttempt struct{ attempts Attempts }

// noteTries is the number of attempts that may fail.
const noteTries = 3

func (s noteAttempt) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if progress := step.Action.Steps[step.Planned.ID]; progress.Failures >= noteTries {
		left, err := json.Marshal(map[string]string{
			"left": actions.LeftBecause("ConfigMap rotate-certs", cmp.Or(progress.LastError, "EKCO cannot write it")),
		})
		return actions.Proof{Done: true, Outputs: left}, err
	}
	noted, err := s.attempts.Attempted(ctx, step.Action.RequestedAt.Truncate(time.Second))
	if errors.Is(kube.Sentinel(err), kube.ErrForbidden) {
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Done: noted, Missing: "ConfigMap rotate-certs does not have the time of this check yet"}, err
}

func (s noteAttempt) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	err := s.attempts.Note(ctx, time.Now())
	if errors.Is(kube.Sentinel(err), kube.ErrForbidden) {
		err = nil // see Prove
	}
	return nil, err
}

// requireOthersAnswer holds the restart of an API server while another API server that must answer does not answer, or
// while another EKCO may restart an API server. Actions of this EKCO exclude each other by their domain.
func (p Primaries) requireOthersAnswer(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	node, _ := journal.ControlPlaneOn(record.Subject)
	switch elsewhere, err := p.Tasks.Elsewhere(ctx, RotateTask, node); {
	case err != nil:
		return actions.Hold("cannot tell whether certificates are being renewed on another primary: " + err.Error()).About("unread")
	case len(elsewhere) > 0:
		return actions.Hold("a pod " + RotateTask + "-… runs on " + strings.Join(elsewhere, ", ") + ", and EKCO renews one primary at a time").About("elsewhere")
	}
	all, err := p.Servers.Primaries(ctx)
	if err != nil {
		return actions.Hold("cannot list the other primaries: " + err.Error()).About("unread")
	}
	own := all[node]
	delete(all, node)
	silent := p.silentServers(ctx, all)
	key := "silent " + strings.Join(slices.Sorted(maps.Keys(silent)), " ")
	if len(silent) == 0 || record.HasForced(AnotherAPIServer, key) || p.isUnusable(ctx, record, own) {
		return actions.Pass()
	}
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		reasons = append(reasons, fmt.Sprintf("%s: %s", name, silent[name]))
	}
	return actions.Hold(fmt.Sprintf("the API server of %s would be restarted while others do not answer: %s; repair them, or purge nodes that are gone; \"ekco retry --force %s\" continues without them",
		node, strings.Join(reasons, "; "), record.ID)).About(key)
}

// silentServers returns the errors of API servers that must answer but do not, by node. API servers of lost nodes are
// included only if all given nodes are lost and no API server answers.
func (p Primaries) silentServers(ctx context.Context, all map[string]primaries.Server) map[string]error {
	silent, lost := map[string]error{}, map[string]error{}
	for name, server := range all {
		switch err := p.Servers.Answers(ctx, server.Address); {
		case err == nil:
		case server.Lost:
			lost[name] = err
		default:
			silent[name] = err
		}
	}
	if len(silent) == 0 && len(lost) == len(all) {
		return lost
	}
	return silent
}

// isUnusable reports whether the primary's own API server serves an expired certificate, or does not answer
// and one of its other certificates has expired.
func (p Primaries) isUnusable(ctx context.Context, record journal.ActionRecord, own primaries.Server) bool {
	if served, err := p.Servers.Serves(ctx, own.Address, apiServerPort); err == nil && !time.Now().Before(served.NotAfter) {
		return true
	}
	input, err := journal.InputOf[journal.PrimaryInput](record.Request)
	expired := err == nil && !input.Ends.IsZero() && !time.Now().Before(input.Ends)
	return expired && p.Servers.Answers(ctx, own.Address) != nil
}

// These are the backoff after the first failed attempt, and the longest backoff.
const (
	minBackoff = 2 * time.Minute
	maxBackoff = 6 * time.Hour
)

// holdForBackoff holds a renewal until the clocks agree and the backoff is over.
func (p Primaries) holdForBackoff(_ context.Context, record journal.ActionRecord) actions.Verdict {
	if err := p.Clock(); err != nil {
		return actions.Hold(err.Error()).About("clock")
	}
	node, _ := journal.ControlPlaneOn(record.Subject)
	step := record.Steps[journal.StepRenewControlPlane+" "+node]
	if step.Failures == 0 || step.Open || step.NextTry.IsZero() {
		return actions.Pass()
	}
	again := step.NextTry.Add(actions.Doubled(minBackoff, maxBackoff, step.Failures-1))
	if !time.Now().Before(again) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; EKCO retries at %s; to retry now, run \"ekco retry %s\"",
		cmp.Or(step.LastError, "the last attempt failed"), again.UTC().Format(time.RFC3339), record.ID)).About("rests")
}

const apiServerPort = 6443

// missingEffects names the effects of the renewal that are not visible yet: in the served certificates, and in the
// state of the components and the node in the API server.
func (p Primaries) missingEffects(ctx context.Context, step actions.StepContext, result json.RawMessage) (string, error) {
	var renewed journal.ControlPlaneRenewed
	if err := json.Unmarshal(result, &renewed); err != nil {
		return "", fmt.Errorf("read what was renewed: %w", err)
	}
	node, _ := journal.ControlPlaneOn(step.Action.Subject)
	input, err := journal.InputOf[journal.PrimaryInput](step.Action.Request)
	if err != nil {
		return "", err
	}
	var lacks []string
	if why := p.notReadyReason(ctx, step.Action); why != "" {
		lacks = append(lacks, why)
	}
	for port, wanted := range renewed.Served {
		if input.Address == "" {
			break
		}
		switch served, err := p.Servers.Serves(ctx, input.Address, port); {
		case err != nil && port == apiServerPort:
			lacks = append(lacks, err.Error())
		case err != nil: // etcd reads its files at each handshake, so a port that EKCO cannot reach needs no check
		case served.Fingerprint != wanted:
			lacks = append(lacks, fmt.Sprintf("port %d of node %s does not serve the certificate in its file", port, node))
		}
	}
	for _, wanted := range renewed.Components {
		why, err := p.notRestartedReason(ctx, wanted, node)
		if err != nil {
			return "", err
		}
		if why != "" {
			lacks = append(lacks, why)
		}
	}
	slices.Sort(lacks)
	return strings.Join(lacks, "; "), nil
}

// notRestartedReason returns the reason why a component does not run with the new certificates, or "".
func (p Primaries) notRestartedReason(ctx context.Context, wanted journal.ControlPlaneComponent, node string) (string, error) {
	is, err := p.Servers.Component(ctx, wanted.Name, node)
	name := fmt.Sprintf("%s on node %s", wanted.Name, node)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return name + " has no pod in the API", nil
	case err != nil:
		return "", err
	case wanted.Hash != "" && is.Hash != wanted.Hash:
		return "the API shows " + name + " with another manifest than the node has", nil
	case is.Started.Before(wanted.Since.Truncate(time.Second)):
		return fmt.Sprintf("%s was started at %s, before its certificates were created", name, is.Started.UTC().Format(time.RFC3339)), nil
	case !is.Ready:
		return name + " is not ready", nil
	}
	return "", nil
}
