package actions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// maxGap is the longest time between two equal verdicts that count as one continuous verdict.
const maxGap = time.Minute

// lastingVerdicts has, by preflight, the verdicts that take effect only after they have lasted for some time.
type lastingVerdicts map[string]lastingVerdict

// lastingVerdict records since when a preflight has repeated a verdict.
type lastingVerdict struct {
	kind        VerdictKind
	key         string
	since, seen time.Time
}

// holdUntilLasting returns the check unchanged if its verdict has lasted long enough. Otherwise it returns a hold with
// the same Lasting.
func (f lastingVerdicts) holdUntilLasting(check Check, now time.Time) Check {
	v := check.Verdict
	if v.Lasting == 0 {
		delete(f, check.Preflight)
		return check
	}
	found := lastingVerdict{kind: v.Kind, key: v.Key, since: now, seen: now}
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

// holdUntilLasting returns a hold for each verdict that has not lasted long enough, except for warnings that were
// already answered.
func (a *run) holdUntilLasting(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = a.lastingVerdicts.holdUntilLasting(check, time.Now())
		if check.Verdict.Kind != VerdictWarn || !judged[i].Verdict.isTooYoung() {
			continue
		}
		if answered, _ := a.isAnswered(check); answered {
			judged[i] = check
		}
	}
	return judged
}

// isTooYoung reports whether the verdict is a hold that replaces a verdict that has not lasted long enough.
func (v Verdict) isTooYoung() bool { return v.Kind == VerdictHold && v.Lasting > 0 }

// waitUntilLasting repeats preflights whose verdicts have not lasted long enough, until the verdicts take effect or
// change. So a person sees the verdicts that would count for an action.
func (r *Runner) waitUntilLasting(ctx context.Context, kind *Kind, record journal.ActionRecord, checks []Check) ([]Check, error) {
	found, judged := make(lastingVerdicts), slices.Clone(checks)
	for i, check := range checks {
		judged[i] = found.holdUntilLasting(check, time.Now())
	}
	for slices.ContainsFunc(judged, func(c Check) bool { return c.Verdict.isTooYoung() }) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("check whether a preflight's answer lasts: %w", ctx.Err())
		case <-time.After(r.cfg.Retry.HoldInitial):
		}
		for i, check := range judged {
			if !check.Verdict.isTooYoung() {
				continue
			}
			again, err := r.checkOne(ctx, kind, record, check.Preflight)
			if err != nil {
				return nil, err
			}
			judged[i] = found.holdUntilLasting(again, time.Now())
		}
	}
	return judged, nil
}
