package ring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Archive has the operations that are possible only for a journal in a file.
type Archive interface {
	Export(ctx context.Context, w io.Writer, query journal.Query) error
	Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error)
	VerifyNow(ctx context.Context) (api.VerifyResult, error)
}

// Backend implements [api.Backend] for a ring.
type Backend struct {
	Archive
	ring *Ring
}

var _ api.Backend = (*Backend)(nil)

// Backend returns the backend for the socket.
func (r *Ring) Backend(archive Archive) *Backend { return &Backend{Archive: archive, ring: r} }

// Verify implements api.Backend.
func (b *Backend) Verify(ctx context.Context) (api.VerifyResult, error) {
	if _, err := b.ring.store.Stat(ctx); err != nil {
		return api.VerifyResult{}, err
	}
	if trouble := b.ring.store.trouble(); trouble != nil && errors.Is(trouble, journal.ErrFileReplaced) {
		return api.VerifyResult{}, trouble
	}
	return b.VerifyNow(ctx)
}

// Status implements api.Backend.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	stat, err := b.ring.store.Stat(ctx)
	if err != nil {
		return api.Status{}, err
	}
	var status api.Status
	err = b.ring.do(ctx, func(s *fsm.State) {
		status = api.StatusOf(s, b.ring.cfg.Policy, b.ring.clock.Now())
		status.Next = append(status.Next, fsm.Foresee(s, b.ring.cfg.Policy, status.Now)...)
		status.Progress = b.ring.progress.copyReports()
		status.Unrecorded = maps.Clone(b.ring.unrecorded)
		status.Starting, status.API = b.ring.startProgress(s)
		status.AsOf = status.API.LostAt
		if status.Starting != nil {
			status.AsOf = api.LastSeen(s)
		}
		status.Absent = append(status.Absent, b.ring.cfg.NotDone...)
		if b.ring.observers != nil {
			status.Absent = append(status.Absent, b.ring.observers.Absent()...)
		}
	})
	if err != nil {
		return api.Status{}, err
	}
	status.Operator = b.ring.processStatus()
	status.Journal.Stat = stat
	status.NotMirrored = b.ring.mirror.Missing()
	if err := b.ring.mirror.Failing(); err != nil {
		status.Mirror = err.Error()
	}
	status.Journal.Writable = true
	if trouble := b.ring.store.trouble(); trouble != nil {
		status.Journal.Writable, status.Journal.Error, status.Journal.UnwritableSince = false, trouble.cause(), trouble.since
		status.Journal.FileReplaced = errors.Is(trouble, journal.ErrFileReplaced)
		status.AsOf = observers.Earlier(status.AsOf, trouble.since)
	}
	return status, nil
}

// Events implements api.Backend.
func (b *Backend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return api.EventsOf(ctx, b.ring.cfg.Store, query, follow)
}

// Request implements api.Backend.
func (b *Backend) Request(ctx context.Context, request fsm.Request) (api.Admission, error) {
	if err := b.waitUntilStarted(ctx); err != nil {
		return api.Admission{}, err
	}
	if only := b.ring.cfg.Only; b.ring.cfg.forCommand() && (Only{request.Kind, request.Name}) != only {
		return api.Admission{}, fmt.Errorf("no operator runs, and a command that %ss %s holds the journal; retry after it has ended: %w",
			b.ring.words.Verb(only.Kind), only.Name, api.ErrRefused)
	}
	request, err := b.withSearchResult(ctx, request)
	if err != nil {
		return api.Admission{}, err
	}
	var answer api.Admission
	err = b.appendInLoop(ctx, func(s *fsm.State) ([]journal.Draft, error) {
		admission, err := fsm.Admit(s, b.ring.cfg.Policy, b.ring.clock.Now(), request)
		answer = api.Admission{
			Action: admission.Action, Resumed: admission.Resumed,
			AlreadyDone: admission.AlreadyDone, Message: admission.Message, FromSeq: s.Seq,
		}
		if err == nil && b.ring.admitted != nil {
			b.ring.admitted[admission.Action] = true
		}
		return admission.Events, err
	})
	return answer, b.translateError(ctx, err)
}

// ExplainThing implements api.Backend.
func (b *Backend) ExplainThing(ctx context.Context, request api.ThingRequest) (things []api.ThingExplanation, err error) {
	asked := b.ring.ask(ctx, func(s *fsm.State) {
		things, err = api.ExplainThings(s, b.ring.clock.Now(), request)
		api.Foresee(things, s, b.ring.cfg.Policy)
	})
	return things, errors.Join(asked, err)
}

// Explain implements api.Backend.
func (b *Backend) Explain(ctx context.Context, request fsm.Request) (api.Explanation, error) {
	if err := b.waitUntilStarted(ctx); err != nil {
		return api.Explanation{}, err
	}
	request, err := b.withSearchResult(ctx, request)
	if err != nil {
		return api.Explanation{}, err
	}
	var admission fsm.Admission
	var open *journal.ActionRecord
	var admitErr error
	err = b.ring.do(ctx, func(s *fsm.State) {
		admission, admitErr = fsm.Admit(s, b.ring.cfg.Policy, b.ring.clock.Now(), request)
		if record, ok := s.OpenAction(admission.Action); ok && admission.Resumed {
			open = &record
		}
	})
	if err := errors.Join(err, admitErr); err != nil {
		return api.Explanation{}, b.translateError(ctx, err)
	}
	if admission.AlreadyDone {
		return api.Explanation{Kind: request.Kind, AlreadyDone: true, Message: admission.Message}, nil
	}
	record, err := recordOf(admission, open, b.ring.clock.Now())
	if err != nil {
		return api.Explanation{}, err
	}
	plan, checks, err := b.ring.runner.Explain(ctx, record)
	if err != nil {
		return api.Explanation{}, err
	}
	explanation := api.Explanation{Kind: record.Kind, Subject: record.Subject, Plan: plan, Message: admission.Message}
	if request.Costs {
		record.Plan, record.Planned = plan, true
		explanation.Costs = b.ring.runner.Costs(ctx, record)
	}
	if admission.Resumed {
		explanation.Resumes = admission.Action
	}
	for _, check := range checks {
		explanation.Checks = append(explanation.Checks, api.CheckResult{
			Preflight: check.Preflight, Verdict: check.Verdict.Kind, Reason: check.Verdict.Reason, Key: check.Verdict.Key,
		})
	}
	return explanation, nil
}

// recordOf returns the record of the open action, or makes one from an admitted request that was not recorded.
func recordOf(admission fsm.Admission, open *journal.ActionRecord, now time.Time) (journal.ActionRecord, error) {
	if open != nil {
		return *open, nil
	}
	for _, draft := range admission.Events {
		if requested, ok := draft.Payload.(journal.ActionRequested); ok {
			return journal.ActionRecord{
				ID: admission.Action, Kind: requested.Kind, Subject: draft.Subject,
				RequestedBy: draft.Actor, RequestedAt: now, Request: requested,
			}, nil
		}
	}
	return journal.ActionRecord{}, fmt.Errorf("explain %s: the request has no action", admission.Action)
}

// Do implements api.Backend.
func (b *Backend) Do(ctx context.Context, command api.Command) error {
	err := b.appendInLoop(ctx, func(s *fsm.State) ([]journal.Draft, error) { return command.Decide(s, b.ring.clock.Now()) })
	if err != nil {
		return b.translateError(ctx, err)
	}
	switch command.(type) {
	case api.PauseRequest, api.ResumeRequest:
		return b.awaitMirrored(ctx)
	}
	return nil
}

// mirrorWait is how long the answer to a pause request waits for the mirror.
const mirrorWait = 8 * time.Second

// awaitMirrored waits for the mirror. It returns nil once the mirror has the pause or its end, and otherwise an error
// that wraps [api.ErrNotMirrored]. The pause is in force in both cases.
func (b *Backend) awaitMirrored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, mirrorWait)
	defer cancel()
	err := errNotOperator
	if !b.ring.cfg.Policy.DryRun && !b.ring.cfg.forCommand() {
		if err = b.ring.updateMirror(ctx); err == nil {
			err = b.ring.mirror.Sync(ctx)
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", api.ErrNotMirrored, err)
}

var errNotOperator = errors.New("a dry run, or a command without an operator, does not write the mirror")

// appendInLoop calls decide and appends the drafts in the loop, so that nothing changes in between. It also appends
// drafts that come with an error, such as a refusal.
func (b *Backend) appendInLoop(ctx context.Context, decide func(*fsm.State) ([]journal.Draft, error)) error {
	var result error
	err := b.ring.do(ctx, func(s *fsm.State) {
		if result = b.ring.foldNewEvents(ctx); result != nil {
			return
		}
		drafts, err := decide(s)
		if len(drafts) > 0 {
			_, appendErr := b.ring.store.Append(ctx, drafts...)
			err = errors.Join(err, appendErr)
		}
		result = err
	})
	return errors.Join(err, result)
}

// waitUntilStarted waits up to startTimeout for a ring that has just started, so that an early command does not use an
// empty state.
func (b *Backend) waitUntilStarted(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-b.ring.startDone:
		return nil
	case <-b.ring.loopEnded:
		return errStopped
	case <-wait.Done():
		return b.notStarted(ctx)
	}
}

// notStarted returns an error with the reason if the start is not complete.
func (b *Backend) notStarted(ctx context.Context) error {
	why := ""
	if err := b.ring.do(ctx, func(s *fsm.State) { why = b.ring.notStarted(s) }); err != nil || why == "" {
		return err
	}
	return fmt.Errorf("%s%w", why, api.Hidden(api.ErrRefused))
}

// blindReason returns the reason why EKCO does not see the present state of the cluster, or "".
func (b *Backend) blindReason(ctx context.Context) string {
	why := ""
	_ = b.ring.ask(ctx, func(s *fsm.State) {
		why = b.ring.notStarted(s)
		if trouble := b.ring.store.trouble(); trouble != nil && why == "" {
			why = trouble.Error()
		}
		if why == "" && !s.API.LostAt.IsZero() {
			why = fmt.Sprintf("the Kubernetes API has not answered since %s (%s)", stamp(s.API.LostAt), s.API.Error)
		}
	})
	return why
}

const startTimeout = 20 * time.Second

// unknownObject is an error about an object that EKCO does not know; the object may exist.
type unknownObject interface {
	error
	Unseen() string
}

// translateError gives an error its identity for the socket. An error about an unknown object gets the reason why EKCO
// does not see the cluster, if there is one.
func (b *Backend) translateError(ctx context.Context, err error) error {
	if unknown, ok := errors.AsType[unknownObject](err); ok {
		if why := b.blindReason(ctx); why != "" {
			err = fmt.Errorf("%s: %s%w", unknown.Unseen(), why, api.Hidden(err))
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fsm.ErrRefused), errors.Is(err, fsm.ErrPastNoReturn), errors.Is(err, fsm.ErrNotInSafeMode):
		return fmt.Errorf("%w%w", err, api.Hidden(api.ErrRefused))
	case errors.Is(err, fsm.ErrAmbiguous):
		return fmt.Errorf("%w%w", err, api.Hidden(api.ErrInvalid))
	case errors.Is(err, fsm.ErrUnknown), errors.Is(err, fsm.ErrNoSuchAction), errors.Is(err, fsm.ErrNotPaused):
		return fmt.Errorf("%w%w", err, api.Hidden(api.ErrNotFound))
	}
	return err
}
