package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// estate is a cluster of primaries, with files, kubelets, and EKCO's program in its pods.
type estate struct {
	*actionstest.World
	*hosttasksim.Cluster
	hosts map[string]*primarytest.Kubelet
	keys  certificatestest.Keys

	mu sync.Mutex
	// silent are the primaries whose API servers do not answer; stale those that serve what
	// they had at first.
	silent map[string]bool
	stale  map[string]string
	// lost are the primaries whose nodes are lost.
	lost map[string]bool
	// clock is why EKCO's clock is wrong.
	clock error
	// image is EKCO's, made is the newest pod.
	image, made string
	seen        []string
	noted       time.Time
	// forbidden: nothing may be noted; unwritable is why nothing can be.
	forbidden  bool
	unwritable error
}

// newEstate has primaries whose certificates are valid for so long. There are but two of them, for
// speed.
func newEstate(bare *actionstest.World, left time.Duration, names ...string) *estate {
	e := &estate{image: "replicated/ekco:v1", World: bare, Cluster: hosttasksim.New(names...), hosts: map[string]*primarytest.Kubelet{}, silent: map[string]bool{}, lost: map[string]bool{}, stale: map[string]string{}}
	for _, name := range names {
		host := &primarytest.Host{T: bare.T, Dir: bare.T.TempDir(), NewKey: e.keys.New, Kind: certificates.ECDSAP256}
		host.Make(time.Now().Add(left))
		host.RemoveAllExcept("scheduler.conf", "pki/apiserver", "kube-scheduler", "etcd")
		e.hosts[name] = &primarytest.Kubelet{Host: host}
		e.Set(name, hosttasksim.Program{Runs: func(args []string) (any, error) { return e.program(name, args) }})
	}
	terms, err := fsm.TermsByKind(fsmcertificates.Capability())
	if err != nil {
		bare.T.Fatal(err)
	}
	for _, kind := range []journal.ActionKind{journal.ActionLookAtCertificates, journal.ActionRenewControlPlane} {
		terms[kind] = fsm.Terms{Rules: actionstest.Rules(), Domains: terms[kind].Domains}
	}
	e.Terms = terms
	return e
}

// program is what runs on a primary.
func (e *estate) program(node string, args []string) (any, error) {
	kubelet := e.hosts[node]
	if args[1] == "read-certs" {
		return primary.Look(kubelet.Dir, 30*24*time.Hour, time.Now(), fsmcertificates.IsDue), nil
	}
	rotation := primary.Rotation{
		Dir: kubelet.Dir, TTL: 30 * 24 * time.Hour, IsDue: fsmcertificates.IsDue, Now: time.Now, Kubelet: kubelet, NewKey: e.keys.New, Patience: RotatePatience, Say: func(string) {},
	}
	result, err := rotation.Run(context.Background())
	if err != nil && (len(result.Rotated) == 0 || len(result.Down) > 0) {
		return nil, errors.New(strings.Join(result.Failed, "; "))
	}
	return rotation.Renewed(result), nil
}

// kinds are the actions as one incarnation of EKCO has them.
func (e *estate) kinds(f *actionstest.Fuse) []actions.Definition {
	clients := mortal{e, f}
	return OfPrimaries(Primaries{
		Tasks:   hosttask.New(clients, clients, hosttasksim.Namespace, slog.New(slog.DiscardHandler)),
		Servers: clients, Attempts: clients, Image: e.image,
		Look: []string{"host-task", "read-certs"}, Rotate: []string{"host-task", "rotate-certs"},
		Clock: func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.clock
		},
		Seen: func(uid string, found journal.CertificatesOnPrimary, since time.Time) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if since.IsZero() || found.Clock.Before(since.Truncate(time.Second)) {
				e.T.Errorf("it was found at %s, and is said to have been after %s", found.Clock, since)
			}
			if line := fmt.Sprintf("%s: %d certificates, %d problems", uid, len(found.Certificates), len(found.Problems)); !slices.Contains(e.seen, line) {
				e.seen = append(e.seen, line)
			}
		},
	})
}

// ask asks for something about the certificates of a primary.
func (e *estate) ask(kind journal.ActionKind, node string) {
	e.T.Helper()
	e.Request(journal.ControlPlaneCertificates(node), journal.ActionRequested{
		Kind: kind, Input: journal.PrimaryInput{UID: "uid-" + node, Address: node, Ends: e.hosts[node].Leaf("pki/apiserver").NotAfter},
	})
}

// outcome is what has become of the primaries.
func (e *estate) outcome() string {
	var lines []string
	for name, kubelet := range e.hosts {
		fresh, starts := 0, 0
		for _, item := range []string{"scheduler.conf", "pki/apiserver"} {
			if kubelet.Whole(item) && time.Until(kubelet.Leaf(item).NotAfter) > 300*24*time.Hour {
				fresh++
			}
		}
		for _, component := range []string{"kube-scheduler", "etcd"} {
			starts += kubelet.Starts(component)
		}
		lines = append(lines, fmt.Sprintf("%s: %d fresh, %d starts", name, fresh, starts))
	}
	slices.Sort(lines)
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("%s; seen %q, noted %v; %d pods left", strings.Join(lines, ", "), e.seen, !e.noted.IsZero(), len(e.Pods()))
}

// mortal is the world as one incarnation reaches it.
type mortal struct {
	*estate
	fuse *actionstest.Fuse
}

func (m mortal) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Cluster.ReadObject(ctx, ref)
}

func (m mortal) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	m.mu.Lock()
	m.made = string(object)
	m.mu.Unlock()
	err = m.fuse.Around("create "+ref.String(), func() (err error) {
		answer, err = m.Cluster.CreateObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return m.fuse.Around("delete "+name, func() error { return m.Cluster.ForceDeletePod(ctx, namespace, name, uid) })
}

// Primaries implements [Servers]: the address of a node is its name.
func (m mortal) Primaries(context.Context) (map[string]primaries.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]primaries.Server{}
	for name := range m.hosts {
		all[name] = primaries.Server{Address: name, Lost: m.lost[name]}
	}
	return all, nil
}

// Answers implements [Servers].
func (m mortal) Answers(_ context.Context, address string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silent[address] {
		return errors.New("connection refused")
	}
	return nil
}

// Serves implements [Servers].
func (m mortal) Serves(_ context.Context, address string, port int) (journal.Certificate, error) {
	m.mu.Lock()
	stale := m.stale[address]
	m.mu.Unlock()
	if port != apiServerPort {
		return journal.Certificate{}, errors.New("no route to host")
	}
	served := certificates.Facts("", m.hosts[address].Leaf("pki/apiserver"))
	if stale != "" {
		served.Fingerprint = stale
	}
	return served, nil
}

// Component implements [Servers].
func (m mortal) Component(_ context.Context, name, node string) (primaries.Component, error) {
	uid, started := m.hosts[node].Newest(name)
	if uid == "" {
		return primaries.Component{}, kube.ErrNotFound
	}
	return primaries.Component{Hash: uid, Ready: true, Started: started}, nil
}

// Attempted implements [Attempts].
func (m mortal) Attempted(_ context.Context, since time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forbidden {
		return false, kube.ErrForbidden
	}
	return !m.noted.IsZero() && !m.noted.Before(since), nil
}

// Note implements [Attempts].
func (m mortal) Note(_ context.Context, at time.Time) error {
	return m.fuse.Around("note", func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.forbidden {
			return kube.ErrForbidden
		}
		if m.unwritable != nil {
			return m.unwritable
		}
		m.noted = at
		return nil
	})
}

// onRecord fails if anything on record, or in the log, has a key in it.
func (e *estate) onRecord() { (&world{World: e.World}).secretless() }
