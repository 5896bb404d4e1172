package minio

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is what an action is about: MinIO on three nodes, to whose changes Kubernetes
// reacts after some time.
type store struct {
	*actionstest.World
	*miniosim.MinIO
	kube    *kubesim.Cluster
	subject journal.Subject
	settle  time.Duration
	looks   int
}

func installed(w *actionstest.World) *store {
	m := miniosim.Install(kubesim.NewObjects(), "a", "b", "c")
	m.ReconcileAfter(20 * time.Second)
	terms, err := fsm.TermsByKind(fsmminio.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	for kind, of := range terms {
		of.Rules = actionstest.Rules()
		terms[kind] = of
	}
	w.Terms = terms
	cluster := kubesim.New()
	for _, node := range []string{"a", "b", "c"} {
		cluster.AddNode(node, journal.RoleWorker)
	}
	return &store{World: w, MinIO: m, kube: cluster, subject: journal.MinioSubject(miniosim.Namespace, m.UID), settle: DefaultHealSettleTime}
}

func (s *store) ask(kind journal.ActionKind, input any) {
	s.T.Helper()
	s.Request(s.subject, journal.ActionRequested{Kind: kind, Input: input})
}

func (s *store) definitions() []actions.Definition { return s.mortal(nil) }

// mortal returns the definitions of one incarnation of the process.
func (s *store) mortal(f *actionstest.Fuse) []actions.Definition {
	client := minio.NewClient(mortalObjects{s.Objects, f}, s.MinIO, miniosim.Namespace)
	return New(client, s.kube, mortalHealers{s.MinIO, f}, s.settle, func() { s.looks++ })
}

// mortalHealers are the servers as one incarnation of the process has them look at all objects.
type mortalHealers struct {
	minio.Healers
	fuse *actionstest.Fuse
}

func (h mortalHealers) Healer(at string, with minio.Credentials) (minio.Healer, error) {
	one, err := h.Healers.Healer(at, with)
	return mortalHealer{one, h.fuse}, err
}

type mortalHealer struct {
	minio.Healer
	fuse *actionstest.Fuse
}

func (h mortalHealer) BeginHeal(ctx context.Context) (begun s3.HealBegun, err error) {
	err = h.fuse.Around("begin a pass", func() error {
		begun, err = h.Healer.BeginHeal(ctx)
		return err
	})
	return begun, err
}

func (h mortalHealer) HealNews(ctx context.Context, token string) (s3.HealNews, error) {
	if err := h.fuse.Alive(); err != nil {
		return s3.HealNews{}, err
	}
	return h.Healer.HealNews(ctx, token)
}

// tells expects these in the story, in order.
func (s *store) tells(parts ...string) {
	s.T.Helper()
	story := strings.Join(s.Story(), "\n")
	rest := story
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			s.T.Fatalf("the journal does not say %q, after what comes before it:\n%s", part, story)
		}
		rest = after
	}
}

// last returns the payload of the last event.
func (s *store) last() string {
	events := s.Events()
	return string(events[len(events)-1].Payload)
}

// outcome is what has become of MinIO; generations tell how often something changed.
func (s *store) outcome() string {
	set := s.Object(minio.StatefulSetRef(miniosim.Namespace))
	if set == nil {
		return "gone"
	}
	service := s.Object(minio.ServiceRef(miniosim.Namespace))
	return fmt.Sprintf("%v replicas, generation %v, Service %v of generation %v", set["spec"].(map[string]any)["replicas"], set["metadata"].(map[string]any)["generation"],
		service["spec"].(map[string]any)["selector"], service["metadata"].(map[string]any)["generation"])
}

// replicas has somebody ask for so many.
func (s *store) replicas(n int) {
	s.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = n })
}
