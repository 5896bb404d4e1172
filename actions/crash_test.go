package actions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

var errDead = errors.New("the process is dead")

// fuse kills one incarnation of the process at its n-th crash point: right
// before or after an append or an effect. From then on every call of that
// incarnation fails and has no effect. At 0 it never does.
type fuse struct {
	at   int
	kill context.CancelFunc

	// lock is a channel of one, since the holder may wait for the bubble's time,
	// which stands still while a goroutine waits for a mutex.
	lock   chan struct{}
	passed int
	where  string
	dead   bool
}

// around runs f between two crash points, unless the process is dead.
func (f *fuse) around(what string, do func() error) error {
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if f.burn("before " + what) {
		return errDead
	}
	err := do()
	if f.burn("after " + what) {
		return errDead
	}
	return err
}

func (f *fuse) burn(where string) bool {
	if f.dead {
		return true
	}
	f.passed++
	if f.passed == f.at {
		f.dead, f.where = true, where
		f.kill()
	}
	return f.dead
}

func (f *fuse) alive() error {
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if f.dead {
		return errDead
	}
	return nil
}

// mortalStore is the journal as one incarnation reaches it.
type mortalStore struct {
	journal.Store
	fuse *fuse
}

func (s mortalStore) Append(ctx context.Context, drafts ...journal.Draft) (events []journal.Event, err error) {
	types := make([]string, len(drafts))
	for i, draft := range drafts {
		types[i] = string(draft.Type)
	}
	err = s.fuse.around("append "+strings.Join(types, "+"), func() (err error) {
		events, err = s.Store.Append(ctx, drafts...)
		return err
	})
	return events, err
}

// mortalAPI is the cluster as one incarnation reaches it.
type mortalAPI struct {
	kube.API
	fuse *fuse
}

func (a mortalAPI) Node(ctx context.Context, name string) (kube.Node, error) {
	if err := a.fuse.alive(); err != nil {
		return kube.Node{}, err
	}
	return a.API.Node(ctx, name)
}

func (a mortalAPI) Pod(ctx context.Context, namespace, name string) (kube.Pod, error) {
	if err := a.fuse.alive(); err != nil {
		return kube.Pod{}, err
	}
	return a.API.Pod(ctx, namespace, name)
}

func (a mortalAPI) DeleteNode(ctx context.Context, name, uid string) error {
	return a.fuse.around("delete-node "+name, func() error { return a.API.DeleteNode(ctx, name, uid) })
}

func (a mortalAPI) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return a.fuse.around("delete-pod "+name, func() error { return a.API.ForceDeletePod(ctx, namespace, name, uid) })
}

// live runs one incarnation from the folded journal to its end or death, and
// returns the number of crash points it passed.
func (w *world) live(at int) (*fuse, error) {
	w.t.Helper()
	ctx, kill := context.WithTimeout(w.t.Context(), 24*time.Hour)
	defer kill()
	f := &fuse{at: at, kill: kill, lock: make(chan struct{}, 1)}
	api := mortalAPI{w.cluster, f}
	cfg := w.config([]actions.Definition{
		clear.New(api),
		purge.New(api, w.parts(f)...),
	})
	cfg.Store = mortalStore{w.store, f}
	return f, actions.NewRunner(cfg).Run(ctx, w.record(), nil)
}

// ended reports whether action.ended is on disk.
func (w *world) ended() bool { return strings.HasPrefix(w.lastLine(), "ended") }

// watchEffects fails the test when an effect happens whose step was not
// started on disk before.
func (w *world) watchEffects() {
	w.cluster.BeforeEffect = w.mustBeStarted
}

// mustBeStarted fails the test when the effect's step is not open on disk.
func (w *world) mustBeStarted(effect string) {
	id, last := stepOf(effect), ""
	for _, line := range w.story() {
		for _, verb := range []string{"started ", "done ", "failed "} {
			if strings.HasPrefix(line, verb+id+" #") {
				last = line
			}
		}
	}
	if !strings.HasPrefix(last, "started") && effect != "write-mirror" {
		w.t.Errorf("effect %q happened while the journal says %q", effect, last)
	}
}

// scene is an action whose every interruption is tried.
type scene struct {
	// set prepares the world and puts the request on disk.
	set func(w *world)
	// points is the least number of crash points that an undisturbed run has.
	points int
}

func scenes() map[string]scene {
	return map[string]scene{
		"clear": {set: func(w *world) { lostNode(w, 3) }, points: 12},
		"clear more than one batch": {set: func(w *world) {
			w.cluster.SetLatency(time.Second)
			lostNode(w, 18)
		}, points: 40},
		"purge": {set: func(w *world) { purged(w, journal.ActionRequested{}) }, points: 8},
		"manual purge of a live node": {set: func(w *world) {
			purged(w, journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
			w.cluster.ReturnNode("w1")
		}, points: 8},
		"manual purge of a live primary with OSDs": {set: func(w *world) {
			s := lostPrimary(w).watched()
			s.reconcile = time.Hour
			s.runs(5 * time.Second)
			s.ask(live)
		}, points: 40},
		"purge of everything": {set: func(w *world) { lostPrimary(w).watched().ask(journal.ActionRequested{}) }, points: 40},
		"purge of everything with a wait": {set: func(w *world) {
			s := lostPrimary(w).watched()
			s.wait = time.Hour
			s.ask(journal.ActionRequested{Manual: true})
		}, points: 40},
		"purge of everything, a disk moves meanwhile": {set: func(w *world) {
			s := lostPrimary(w).watched()
			s.rook.AfterEffect = func(effect string) {
				if effect == "delete-deployment rook-ceph-osd-12" && len(s.deploymentsOn("p9")) == 0 {
					moves["and Rook bound its Deployment to the machine"](s)
				}
			}
			s.ask(journal.ActionRequested{})
		}, points: 40},
		"purge of everything, Ceph answers later": {set: func(w *world) {
			s := lostPrimary(w).watched()
			s.ceph.Outage(true)
			time.AfterFunc(10*time.Minute, func() { s.ceph.Outage(false) })
			s.ask(journal.ActionRequested{Manual: true})
		}, points: 40},
	}
}

// andCancelled adds to the scenes one that cannot be asked for twice.
func andCancelled(scenes map[string]scene) map[string]scene {
	scenes["cancelled purge of a live primary with OSDs"] = scene{set: func(w *world) {
		s := lostPrimary(w)
		if err := s.ceph.Reweight(w.t.Context(), 107, 0.8); err != nil {
			w.t.Fatal(err)
		}
		s.rook.EditNode("w1", anEntry)
		s.reconcile = 48 * time.Hour
		s.watched().runs(0)
		s.ask(live)
		r := s.start(s.cfg())
		letPass(2 * time.Minute)
		r.halt()
		s.cancelBy(nil)
	}, points: 12}
	return scenes
}

// end is what a world has come to.
func (w *world) end() string {
	nodes, pods, _ := w.cluster.Snapshot()
	changes := 0
	for _, effect := range w.cluster.Effects() {
		if effect.Changed && effect.Name != "write-mirror" {
			changes++
		}
	}
	others := ""
	if w.describe != nil {
		others = w.describe() + ", "
	}
	return fmt.Sprintf("nodes %v, pods %v, %d changes, %s%s", names(nodes), pods, changes, others, w.lastLine())
}

func names(nodes []kube.Node) (names []string) {
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}

// undisturbed returns the end of a scene without a crash, and its number of
// crash points.
func undisturbed(t *testing.T, s scene) (end string, points int) {
	inBubble(t, func(t *testing.T, w *world) {
		w.watchEffects()
		s.set(w)
		life, err := w.live(0)
		if err != nil {
			w.t.Fatal(err)
		}
		end, points = w.end(), life.passed
	})
	if points < s.points {
		t.Fatalf("only %d crash points, want at least %d", points, s.points)
	}
	return end, points
}

func TestAnActionKilledAtAnyPointEndsAsIfItHadNotBeen(t *testing.T) {
	for name, s := range andCancelled(scenes()) {
		t.Run(name, func(t *testing.T) {
			want, points := undisturbed(t, s)
			for at := 1; at <= points; at++ {
				inBubble(t, func(t *testing.T, w *world) {
					w.watchEffects()
					s.set(w)
					w.crashAndResume(at, 0)
					if got := w.end(); got != want {
						w.t.Errorf("killed at point %d of %d, it ends as %s, want %s; %q", at, points, got, want, w.story())
					}
				})
			}
		})
	}
}

// crashAndResume kills a first and a second incarnation, and lets a third one
// finish.
func (w *world) crashAndResume(first, second int) {
	w.t.Helper()
	for _, at := range []int{first, second, 0} {
		if w.ended() {
			return
		}
		life, err := w.live(at)
		if at == 0 && err != nil {
			w.t.Fatalf("the last incarnation ended with %v", err)
		}
		if at != 0 && life.dead && err == nil && !w.ended() {
			w.t.Fatalf("killed %s, it claims to have ended", life.where)
		}
	}
}

func TestAnActionKilledTwiceEndsAsIfItHadNotBeen(t *testing.T) {
	for name, s := range andCancelled(scenes()) {
		t.Run(name, func(t *testing.T) {
			want, points := undisturbed(t, s)
			stride := max(1, points/12)
			for first := 1; first <= points; first += stride {
				for second := 1; second <= points; second += stride {
					inBubble(t, func(t *testing.T, w *world) {
						w.watchEffects()
						s.set(w)
						w.crashAndResume(first, second)
						if got := w.end(); got != want {
							w.t.Errorf("killed at points %d and %d, it ends as %s, want %s", first, second, got, want)
						}
					})
				}
			}
		})
	}
}

func TestAnActionThatIsDoneAgainChangesNothingMore(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			_, points := undisturbed(t, s)
			for at := 1; at <= points; at++ {
				inBubble(t, func(t *testing.T, w *world) {
					s.set(w)
					request := w.events()[0]
					w.crashAndResume(at, 0)
					// What was left alone the first time is not looked for again.
					before, _, _ := strings.Cut(w.end(), "ended done")
					w.again(request)
					w.crashAndResume(at, 0)
					if got, _, _ := strings.Cut(w.end(), "ended done"); got != before {
						w.t.Errorf("done again, it went from %s to %s", before, got)
					}
				})
			}
		})
	}
}

// again asks for the same once more.
func (w *world) again(request journal.Event) {
	w.t.Helper()
	payload, err := request.Decode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.request(request.Subject, *payload.(*journal.ActionRequested))
}

func TestTheDeadDoNotActOnAnotherJournal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		life, err := w.live(1)
		if err == nil || life.where != "before append action.planned" {
			t.Errorf("killed %s: %v", life.where, err)
		}
		if len(w.cluster.Effects()) != 0 || !slices.Equal(w.story(), []string{"requested"}) {
			t.Errorf("after its death it did %v and wrote %q", w.cluster.Effects(), w.story())
		}
		synctest.Wait()
	})
}
