package minio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// picky is a store that does not take every setting.
type picky struct {
	plainStore
	fails map[s3.SettingName]error
	// keeps is a setting that it does not give up again.
	keeps s3.SettingName
	// sets are the settings that it was given.
	sets []string
}

func (p *picky) Set(ctx context.Context, bucket string, name s3.SettingName, value string) error {
	p.sets = append(p.sets, fmt.Sprintf("%s=%q", name, value))
	if err := p.fails[name]; err != nil {
		return err
	}
	if name == p.keeps && value == "" {
		return errors.New("connection refused")
	}
	return p.Store.Set(ctx, bucket, name, value)
}

// declined is a refusal.
type declined struct{ error }

func (d declined) Reason() string { return d.Error() }

// TestWhatActsByItselfIsTriedAndTakenBack: that a server does not take it must be known before the switch,
// and until then it must remove nothing.
func TestWhatActsByItselfIsTriedAndTakenBack(t *testing.T) {
	const lifecycle, notification, quota = "<LifecycleConfiguration/>", "<NotificationConfiguration/>", `{"quota":1}`
	all := s3.Settings{s3.Lifecycle: lifecycle, s3.Notification: notification, s3.Quota: quota}
	for _, test := range []struct {
		name  string
		fails map[s3.SettingName]error
		keeps s3.SettingName
		sets  []string
		loss  []string
		err   string
	}{
		{
			name:  "one is taken, one is not offered, one is declined",
			fails: map[s3.SettingName]error{s3.Notification: fmt.Errorf("set it: %w", s3.ErrNotOffered), s3.Quota: declined{errors.New("it is too much")}},
			sets:  []string{`lifecycle="<LifecycleConfiguration/>"`, `lifecycle=""`, `notification="<NotificationConfiguration/>"`, `quota="{\"quota\":1}"`},
			loss: []string{
				"the notification of bucket b cannot be carried over: the target does not offer it", "the quota of bucket b cannot be carried over: it is too much",
			},
		},
		{
			name: "the server is away", fails: map[s3.SettingName]error{s3.Lifecycle: errors.New("connection refused")},
			sets: []string{`lifecycle="<LifecycleConfiguration/>"`}, err: "connection refused",
		},
		{
			name: "it acts from now on", keeps: s3.Lifecycle,
			sets: []string{`lifecycle="<LifecycleConfiguration/>"`, `lifecycle=""`}, err: "take back the lifecycle of bucket b, which was only tried: connection refused",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, target := s3sim.New(), &picky{plainStore: plainStore{s3sim.New()}, fails: test.fails, keeps: test.keeps}
				source.AddBucket("b", all)
				target.AddBucket("b", nil)
				both := sides{source: plainStore{source}, target: &fenced{Store: target, service: newFence(newService())}}
				keeps := &acting{of: map[string]map[string]string{}}
				lost, err := both.rehearse(t.Context(), keeps)
				if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Error(err)
				}
				if diff := cmp.Diff(test.sets, target.sets); diff != "" {
					t.Error(diff)
				}
				var names []string
				for _, warning := range lost {
					names = append(names, warning.String())
				}
				if diff := cmp.Diff(test.loss, names); diff != "" {
					t.Error(diff)
				}
				if kept := keeps.of["b"]; len(kept) != 3 {
					t.Errorf("kept are %v", kept)
				}
			})
		})
	}
}

// TestWhatATryLeftIsTakenAway: the next one does that, and one that is cancelled leaves nothing.
func TestWhatATryLeftIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wanted := range []string{"<expire/>", ""} {
			source, target := s3sim.New(), s3sim.New()
			source.AddBucket("b", s3.Settings{s3.Lifecycle: wanted})
			target.AddBucket("b", s3.Settings{s3.Lifecycle: "<expire/>"})
			both := sides{source: plainStore{source}, target: &fenced{Store: plainStore{target}, service: newFence(newService())}}
			keeps := &acting{of: map[string]map[string]string{}}
			if _, err := both.rehearse(t.Context(), keeps); err != nil {
				t.Error(err)
			}
			if has, err := target.Settings(t.Context(), "b"); err != nil || has[s3.Lifecycle] != "" {
				t.Errorf("of an earlier one is left %v, %v", has, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			target.AfterEffect = func(string) { cancel() }
			_, err := both.rehearse(ctx, keeps)
			if has, unread := target.Settings(t.Context(), "b"); unread != nil || has[s3.Lifecycle] != "" {
				t.Errorf("of a cancelled one is left %v, %v, %v", has, unread, err)
			}
			cancel()
		}
	})
}
