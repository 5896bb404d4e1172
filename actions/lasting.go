package actions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// maxGap is how far apart two equal verdicts may be to count as one that lasted.
const maxGap = time.Minute

// findings are the verdicts that count only after they have lasted, by preflight.
type findings map[string]finding

// finding is a verdict that a preflight repeats.
type finding struct {
	kind        VerdictKind
	key         string
	since, seen time.Time
}

// judge turns a verdict that has not lasted long enough into a hold, which keeps Lasting.
func (f findings) judge(check Check, now time.Time) Check {
	v := check.Verdict
	if v.Lasting == 0 {
		delete(f, check.Preflight)
		return check
	}
	found := finding{kind: v.Kind, key: v.Key, since: now, seen: now}
	before, is := f[check.Preflight]
	if is && before.kind == found.kind && before.key == found.key && now.Sub(before.seen) <= maxGap {
		found.since = before.since
	}
	f[check.Preflight] = found
	if now.Sub(found.since) >= v.Lasting {
		return check
	}
	check.Verdict = Hold(fmt.Sprintf("%s; often temporary, so EKCO waits until it has lasted %s", v.Meanwhile, v.Lasting)).About("not yet " + v.Key)
	check.Verdict.Lasting = v.Lasting
	return check
}

// lasting turns the verdicts that have not lasted long enough into holds, except warnings that were answered already.
func (a *run) lasting(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = a.found.judge(check, time.Now())
		if check.Verdict.Kind != VerdictWarn || !judged[i].Verdict.young() {
			continue
		}
		if answered, _ := a.answered(check); answered {
			judged[i] = check
		}
	}
	return judged
}

// young reports whether the verdict is a hold for one that has not lasted long enough.
func (v Verdict) young() bool { return v.Kind == VerdictHold && v.Lasting > 0 }

// waitUntilLasting repeats the preflights whose answers count only after they have lasted, until they count or change. So a person
// sees only what would also count for an action.
func (r *Runner) waitUntilLasting(ctx context.Context, kind *Kind, record journal.ActionRecord, checks []Check) ([]Check, error) {
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
