package minio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
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
				"the notification of bucket b (" + s3.Notification.Mark(notification) + ") cannot be carried over: the target does not offer it",
				"the quota of bucket b (" + s3.Quota.Mark(quota) + ") cannot be carried over: it is too much",
			},
		},
		{
			name: "the server is away", fails: map[s3.SettingName]error{s3.Lifecycle: errors.New("connection refused")},
			sets: []string{`lifecycle="<LifecycleConfiguration/>"`}, err: "connection refused",
		},
		{
			name: "it acts from now on", keeps: s3.Lifecycle,
			sets: []string{`lifecycle="<LifecycleConfiguration/>"`, `lifecycle=""`}, err: "remove the lifecycle of bucket b, which EKCO set only as a test: connection refused",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, target := s3sim.New(), &picky{plainStore: plainStore{s3sim.New()}, fails: test.fails, keeps: test.keeps}
				source.AddBucket("b", all)
				target.AddBucket("b", nil)
				both := sides{source: plainStore{source}, target: &fencedStore{Store: target, service: newFence(newService())}}
				keeps := &actingSettings{of: map[string]map[string]string{}}
				lost, err := both.rehearseSettings(t.Context(), keeps)
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
			both := sides{source: plainStore{source}, target: &fencedStore{Store: plainStore{target}, service: newFence(newService())}}
			keeps := &actingSettings{of: map[string]map[string]string{}}
			if _, err := both.rehearseSettings(t.Context(), keeps); err != nil {
				t.Error(err)
			}
			if has, err := target.Settings(t.Context(), "b"); err != nil || has[s3.Lifecycle] != "" {
				t.Errorf("of an earlier one is left %v, %v", has, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			target.AfterEffect = func(string) { cancel() }
			_, err := both.rehearseSettings(ctx, keeps)
			if has, unread := target.Settings(t.Context(), "b"); unread != nil || has[s3.Lifecycle] != "" {
				t.Errorf("of a cancelled one is left %v, %v, %v", has, unread, err)
			}
			cancel()
		}
	})
}

// declining are stores whose target does not take some settings.
type declining struct {
	minio.Stores
	mu    sync.Mutex
	names []s3.SettingName
}

func (d *declining) decline(names ...s3.SettingName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = names
}

func (d *declining) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := d.Stores.Store(addresses, credentials)
	if err != nil || strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return decliningTarget{store, d}, nil
}

type decliningTarget struct {
	minio.Store
	by *declining
}

func (t decliningTarget) Set(ctx context.Context, bucket string, name s3.SettingName, value string) error {
	t.by.mu.Lock()
	declines := slices.Contains(t.by.names, name)
	t.by.mu.Unlock()
	if idle, has := idleSettings[name]; declines && (!has || value != idle) {
		return declined{errors.New("it is too much")}
	}
	return t.Store.Set(ctx, bucket, name, value)
}

// declines has a migration whose target does so.
func (b *duo) declines(names ...s3.SettingName) (*declining, *actionstest.Running) {
	b.T.Helper()
	b.asks()
	d := &declining{Stores: miniosim.Network{Both: b.Both}, names: names}
	m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
	m.Stores = d
	return d, b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
}

// TestAReleaseIsOfThatContent: what is written under the same name later nobody has released.
func TestAReleaseIsOfThatContent(t *testing.T) {
	for name, test := range map[string]struct {
		setting s3.SettingName
		was     s3.Settings
		now     string
	}{
		"a setting":                   {s3.Policy, s3.Settings{s3.Policy: `{"Version":"1"}`}, `{"Version":"2"}`},
		"a setting that acts":         {s3.Quota, s3.Settings{s3.Quota: `{"quota":1}`}, `{"quota":2}`},
		"a setting that is only last": {s3.ObjectLock, s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.ObjectLock: "<Rule>10 days</Rule>"}, "<Rule>20 days</Rule>"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.AddBucket("b", test.was)
				_, r := b.declines(test.setting)
				b.held(journal.StepCutOverMinio, MinioCarriedOver, fmt.Sprintf("the %s of bucket b (", test.setting))
				if err := b.Source.Set(t.Context(), "b", test.setting, test.now); err != nil {
					t.Fatal(err)
				}
				b.force(r)
				b.Pass(time.Minute)
				b.held(journal.StepCutOverMinio, MinioCarriedOver, test.setting.Mark(test.now))
				b.backs()
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false`)
			})
		})
	}
}

// TestWhatIsRefusedLastIsReleasedWithTheRest: a force of one list must not take back that of the other.
func TestWhatIsRefusedLastIsReleasedWithTheRest(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("b", s3.Settings{s3.Policy: "{}", s3.Versioning: s3.VersioningEnabled, s3.ObjectLock: "<Rule>10 days</Rule>"})
		b.Refused = []string{"service account robot"}
		_, r := b.declines(s3.Policy, s3.ObjectLock)
		b.held(journal.StepCutOverMinio, MinioCarriedOver, "the policy of bucket b (")
		b.force(r)
		b.held(journal.StepCutOverMinio, MinioCarriedOver, "the object lock of bucket b (")
		b.backs()
		if all := b.cut().Uncarried; all.Count != 3 {
			t.Fatalf("the list is %+v", all)
		}
		b.force(r)
		b.ends(r, `the Service leads to "ha-minio", Deployment false`)
	})
}

// TestWhatIsRefusedSinceTheCatchUpNeedsNoOutage to be noticed.
func TestWhatIsRefusedSinceTheCatchUpNeedsNoOutage(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Cordon("a", true)
		d, r := b.declines()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		before := b.Calls("patch services")
		d.decline(s3.Lifecycle)
		b.Cordon("a", false)
		b.held(journal.StepCutOverMinio, MinioCarriedOver, "the lifecycle of bucket kept (")
		if b.Calls("patch services") != before {
			t.Error("clients were kept out")
		}
		r.Halt()
	})
}

// TestWhatIsRefusedOfASourceThatIsLostIsReleasedFirst: what it would set is on record only.
func TestWhatIsRefusedOfASourceThatIsLostIsReleasedFirst(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("acts", acts)
		b.Cordon("a", true)
		_, r := b.declines(s3.ObjectLock)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Stick(true)
		b.KillSingle()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data at")
		b.force(r)
		b.held(journal.StepCutOverMinio, MinioCarriedOver, "the object lock of bucket acts (")
		b.backs()
		b.force(r)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data at")
		b.force(r)
		b.ends(r, `the Service leads to "ha-minio", Deployment false, claim true`)
	})
}
