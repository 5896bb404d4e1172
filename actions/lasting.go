package actions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// unseen is how far apart two looks may be that found the same for it to count as
// having lasted in between.
const unseen = time.Minute

// findings are the verdicts that count only once they have lasted, by preflight.
type findings map[string]finding

// finding is what a preflight answers again and again.
type finding struct {
	kind        VerdictKind
	key         string
	since, seen time.Time
}

// judge makes a hold of a verdict that has not lasted for long enough yet. Such a
// hold still says how long the verdict has to last.
func (f findings) judge(check Check, now time.Time) Check {
	v := check.Verdict
	if v.Lasting == 0 {
		delete(f, check.Preflight)
		return check
	}
	found := finding{kind: v.Kind, key: v.Key, since: now, seen: now}
	before, is := f[check.Preflight]
	if is && before.kind == found.kind && before.key == found.key && now.Sub(before.seen) <= unseen {
		found.since = before.since
	}
	f[check.Preflight] = found
	if now.Sub(found.since) >= v.Lasting {
		return check
	}
	check.Verdict = Hold(fmt.Sprintf("%s; this counts only after it has lasted %s, and often ends sooner", v.Meanwhile, v.Lasting)).About("not yet " + v.Key)
	check.Verdict.Lasting = v.Lasting
	return check
}

// lasting holds what has not lasted for long enough, unless it is a warning that
// was answered: who was told of it has seen it last.
func (a *run) lasting(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = a.found.judge(check, time.Now())
		if check.Verdict.Kind != VerdictWarn || !judged[i].Verdict.young() {
			continue
		}
		if told, _ := a.answered(check); told {
			judged[i] = check
		}
	}
	return judged
}

// young reports whether the verdict is one that has not lasted for long enough.
func (v Verdict) young() bool { return v.Kind == VerdictHold && v.Lasting > 0 }

// outlast asks preflights again whose answers count only once they have lasted,
// until they have or are others, so that a person is told no more than an action
// would be.
func (r *Runner) outlast(ctx context.Context, kind *Kind, record journal.ActionRecord, checks []Check) ([]Check, error) {
	found, judged := make(findings), slices.Clone(checks)
	for i, check := range checks {
		judged[i] = found.judge(check, time.Now())
	}
	for slices.ContainsFunc(judged, func(c Check) bool { return c.Verdict.young() }) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("check whether a preflight's answer lasts: %w", ctx.Err())
		case <-time.After(r.cfg.Retry.HoldInitial):
		}
		for i, check := range judged {
			if !check.Verdict.young() {
				continue
			}
			again, err := r.checkOne(ctx, kind, record, check.Preflight)
			if err != nil {
				return nil, err
			}
			judged[i] = found.judge(again, time.Now())
		}
	}
	return judged, nil
}
