package minio

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// listing is an API server whose lists have addresses that are others' while the Service leads
// nowhere.
type listing struct {
	minio.API
	both *miniosim.Both
}

func (l listing) Single(ctx context.Context) (minio.Single, error) {
	single, err := l.API.Single(ctx)
	if l.both.ServiceLeads() == "" {
		for i := range single.Pods {
			single.Pods[i].Address = "10.99.0.1:9000"
		}
	}
	return single, err
}

// TestTheAddressOfThePodThatIsCopiedFromIsItsOwn: that of a list may be another's by then.
func TestTheAddressOfThePodThatIsCopiedFromIsItsOwn(t *testing.T) {
	inADuo(t, func(b *duo) {
		m := &migrator{api: listing{b.Client(b.Objects), b.Both}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.ends(b.Start(b.Config([]actions.Definition{migrateDefinition(m)})), handedOver)
		if b.Count("failed cut-over") != 0 {
			t.Errorf("the story is\n%s", strings.Join(b.Story(), "\n"))
		}
	})
}

// podIs answers what a pod of the single MinIO is.
type podIs struct {
	minio.API
	pod    minio.SinglePod
	exists bool
	err    error
}

func (p podIs) SinglePod(context.Context, string, string) (minio.SinglePod, bool, error) {
	return p.pod, p.exists, p.err
}

func TestThePodThatWasComparedMustStillBeThere(t *testing.T) {
	compared := minio.SinglePod{Name: "new", UID: "two", Address: "10.0.0.2:9000", State: journal.MinioPodRuns}
	with := func(change func(*minio.SinglePod)) minio.SinglePod {
		pod := compared
		change(&pod)
		return pod
	}
	away := errors.New("the API server is away")
	for want, api := range map[string]podIs{
		"":                                      {pod: compared, exists: true},
		"pod new is gone":                       {},
		"pod new has address 10.0.0.3:9000 now": {pod: with(func(p *minio.SinglePod) { p.Address = "10.0.0.3:9000" }), exists: true},
		"pod new is not ready: Running, not ready": {pod: with(func(p *minio.SinglePod) { p.Unready = "Running, not ready" }), exists: true},
		"pod new is not ready: it has no address":  {pod: with(func(p *minio.SinglePod) { p.Address = "" }), exists: true},
		"the API server is away":                   {err: away},
	} {
		a := &attempt{migrator: &migrator{api: api}}
		if err := a.requireStillServes(t.Context(), compared); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
}

// leaving is an API server by which the pod is another one at the second look, as where it was
// replaced while it was compared.
type leaving struct {
	minio.API
	looks *int
}

func (l leaving) SinglePod(ctx context.Context, name, uid string) (minio.SinglePod, bool, error) {
	if *l.looks++; *l.looks == 2 {
		return minio.SinglePod{}, false, nil
	}
	return l.API.SinglePod(ctx, name, uid)
}

func TestASwitchWhosePodIsReplacedMeanwhileIsTakenBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		looks := 0
		m := &migrator{api: leaving{b.Client(b.Objects), &looks}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.asks()
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes("failed cut-over")
		b.backs()
		if cut := b.cut(); cut.Settled || cut.Switches || !strings.Contains(cut.Error, "at 10.9.0.2:9000, which no longer serves: pod minio-5d9c-2 is gone") {
			t.Errorf("on record is %+v", cut)
		}
		b.ends(r, handedOver)
	})
}

// TestACallOffIsTriedUntilTheServiceLeadsSomewhere: after ten failures it stalled, with clients
// kept out.
func TestACallOffIsTriedUntilTheServiceLeadsSomewhere(t *testing.T) {
	for name, fault := range map[string]func(b *duo, on bool){
		"the API server is away": func(b *duo, on bool) { b.Outage(on) },
		"it may not be patched": func(b *duo, on bool) {
			if on {
				b.Forbid("patch services")
			} else {
				b.Allow("patch services")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Hang(true)
				b.asks()
				r := b.start()
				b.comes("noted cut-over")
				b.Pass(time.Second)
				fault(b, true)
				b.Cancel(r)
				b.Pass(3 * time.Hour)
				if b.ServiceLeads() != "" || b.Ended() || b.Count("stalled") != 0 {
					t.Fatalf("the Service leads to %q\n%s", b.ServiceLeads(), strings.Join(b.Story(), "\n"))
				}
				fault(b, false)
				b.Pass(time.Minute)
				b.backs()
				r.End()
				if !strings.HasPrefix(b.LastLine(), "ended cancelled") {
					t.Errorf("%s", b.LastLine())
				}
			})
		})
	}
}
