package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// duo is what a migration is about.
type duo struct {
	*actionstest.World
	*miniosim.Both
	kube    *kubesim.Cluster
	subject journal.Subject
	// writer writes all the time.
	writer *miniosim.Writer
	// migration is what it is told besides.
	migration Migration

	mu    sync.Mutex
	looks int
}

// kept and plain are buckets with and without versions.
const (
	kept  = "kept"
	plain = "plain"
)

// grown has both MinIOs run, with something in the single one.
func grown(w *actionstest.World) *duo {
	b := &duo{World: w, Both: miniosim.InstallBoth(kubesim.NewObjects(), "a", "b", "c"), kube: kubesim.New()}
	b.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 6 })
	b.Reconcile()
	b.ReconcileBothAfter(20*time.Second, time.Second)
	terms, err := fsm.TermsByKind(fsmminio.WithMigration())
	if err != nil {
		w.T.Fatal(err)
	}
	for kind, of := range terms {
		of.Rules = actionstest.Rules()
		terms[kind] = of
	}
	w.Terms = terms
	for _, node := range []string{"a", "b", "c"} {
		b.kube.AddNode(node, journal.RoleWorker)
	}
	b.subject = journal.MinioSubject(miniosim.Namespace, b.UID)
	b.Source.AddBucket(plain, nil)
	b.Source.AddBucket(kept, s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.Lifecycle: "<expire/>"})
	at := time.Now().Add(-time.Hour)
	for i := range 3 {
		b.Source.Write(kept, fmt.Sprintf("document-%d", i%2), fmt.Sprintf("text %d", i), s3.Attributes{}, at.Add(time.Duration(i)*time.Second))
	}
	b.Source.Delete(kept, "document-1", at.Add(time.Minute))
	b.migration = Migration{CutOverLimit: DefaultCutOverLimit, KeepSource: DefaultKeepSource, AbsentFor: DefaultAbsentFor}
	return b
}

func (b *duo) asks() { b.asksWith(journal.MinioMigrate{}) }

// asksWith asks for a migration with what is known of what EKCO did before.
func (b *duo) asksWith(known journal.MinioMigrate) {
	b.T.Helper()
	b.Request(b.subject, journal.ActionRequested{Kind: journal.ActionMigrateMinio, Input: known})
}

// fingerprint is that of all that standalone MinIO has.
func (b *duo) fingerprint() string {
	b.T.Helper()
	both := b.both()
	all, err := replica.Survey(b.T.Context(), both.source)
	if err != nil {
		b.T.Fatal(err)
	}
	text, err := both.fingerprint(b.T.Context(), all.Fingerprint)
	if err != nil {
		b.T.Fatal(err)
	}
	return text
}

// both opens both stores.
func (b *duo) both() sides {
	b.T.Helper()
	m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
	both, err := m.open(b.T.Context(), journal.ActionRecord{Plan: journal.Plan{Facts: []byte("{}")}})
	if err != nil {
		b.T.Fatal(err)
	}
	return both
}

// deployment is the UID of the single one.
func (b *duo) deployment() string {
	b.T.Helper()
	uid, known := b.Object(minio.DeploymentRef(miniosim.Namespace))["metadata"].(map[string]any)["uid"].(string)
	if !known || uid == "" {
		b.T.Fatal("the Deployment has no UID")
	}
	return uid
}

// copied has the highly available one have all that the single one has.
func (b *duo) copied() {
	b.T.Helper()
	both := b.both()
	if _, err := both.prepare(b.T.Context()); err != nil {
		b.T.Fatal(err)
	}
	if _, err := replica.Pass(b.T.Context(), both.source, both.target, replica.Options{}); err != nil {
		b.T.Fatal(err)
	}
	if _, err := replica.Settle(b.T.Context(), both.source, both.target); err != nil {
		b.T.Fatal(err)
	}
}

// definitions are those of one incarnation of the process.
func (b *duo) definitions(f *actionstest.Fuse) []actions.Definition {
	migration := b.migration
	migration.Stores = miniosim.Network{Both: b.Both, Alive: f.Alive, Around: f.Around}
	client := minio.NewClient(mortalObjects{b.Objects, f}, b.Both, miniosim.Namespace)
	return append(New(client, b.kube, b.MinIO, DefaultHealSettleTime, func() {}), NewMigration(client, migration, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.looks++
	}))
}

// forced has somebody have gone past holds of those keys before.
func (b *duo) forced(preflight string, keys ...string) {
	b.T.Helper()
	for _, key := range keys {
		b.AppendAbout(b.subject, "operator", journal.ActionHeld{Preflight: preflight, Reason: "not yet", Key: key}, journal.TypeActionHeld)
		b.AppendAbout(b.subject, "cli:me@here", journal.ActionRetried{Force: true}, journal.TypeActionRetried)
	}
}

// force has an administrator go past what holds the migration now.
func (b *duo) force(r *actionstest.Running) {
	b.T.Helper()
	b.Append("cli:me@here", journal.ActionRetried{Force: true, List: listOf(b.Record())}, journal.TypeActionRetried)
	b.Tell(r, journal.TypeActionRetried)
}

// listOf is the key of the list that holds an action, if one does.
func listOf(record journal.ActionRecord) (key string) {
	for _, held := range record.Holds {
		key = cmp.Or(key, held.ListKey())
	}
	return key
}

// start starts a run that lives on.
func (b *duo) start() *actionstest.Running { return b.Start(b.Config(b.definitions(nil))) }

// held expects that a step is held so, after some time.
func (b *duo) held(step, preflight, reason string) {
	b.T.Helper()
	for range 400 {
		held := b.Record().Holds[step]
		if held.Preflight == preflight && strings.Contains(held.Reason, reason) {
			return
		}
		b.Pass(5 * time.Second)
	}
	b.T.Fatalf("step %s is not held by %s for %q: %+v\n%s", step, preflight, reason, b.Record().Holds, strings.Join(b.Story(), "\n"))
}

// comes waits until the story says so.
func (b *duo) comes(line string) {
	b.T.Helper()
	for range 2000 {
		if strings.Contains(strings.Join(b.Story(), "\n"), line) {
			return
		}
		b.Pass(50 * time.Millisecond)
	}
	b.T.Fatalf("the story does not say %q:\n%s", line, strings.Join(b.Story(), "\n"))
}

// outcome is what has become of both.
func (b *duo) outcome() string {
	there := func(ref kube.Ref) bool {
		object := b.Object(ref)
		return object != nil && object["metadata"].(map[string]any)["deletionTimestamp"] == nil
	}
	text := fmt.Sprintf("the Service leads to %q, Deployment %t, claim %t", b.ServiceLeads(), there(minio.DeploymentRef(miniosim.Namespace)), there(minio.SingleClaimRef(miniosim.Namespace)))
	if has := aside.ReplaceAllString(b.Target.Dump(), ""); b.Source.Dump() != has {
		text += "\nsource:\n" + b.Source.Dump() + "target:\n" + has
	}
	if !b.SameIAM() {
		text += ", other users"
	}
	return text
}

// aside is the part of a dump that tells what was set aside.
var aside = regexp.MustCompile("(?m)^" + asideBucket + " .*\n(  .*\n)*")

const (
	handedOver = `the Service leads to "ha-minio", Deployment false, claim false`
	asBefore   = `the Service leads to "minio", Deployment true, claim true`
)

// nothingSecret expects that no secret is in the journal or the log.
func (b *duo) nothingSecret() {
	b.T.Helper()
	all := b.Logged()
	for _, event := range b.Events() {
		raw, err := json.Marshal(event)
		if err != nil {
			b.T.Fatal(err)
		}
		all += string(raw)
	}
	for _, secret := range miniosim.Secrets() {
		if strings.Contains(all, secret) {
			b.T.Error("a secret is in the journal or in the log")
		}
	}
}

// mortalObjects are the API server as one incarnation of the process reaches it.
type mortalObjects struct {
	kube.Objects
	fuse *actionstest.Fuse
}

func (o mortalObjects) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := o.fuse.Alive(); err != nil {
		return nil, err
	}
	return o.Objects.ReadObject(ctx, ref)
}

func (o mortalObjects) ListObjects(ctx context.Context, ref kube.Ref, label, value string) ([]json.RawMessage, error) {
	if err := o.fuse.Alive(); err != nil {
		return nil, err
	}
	return o.Objects.ListObjects(ctx, ref, label, value)
}

func (o mortalObjects) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (answer json.RawMessage, err error) {
	err = o.fuse.Around("patch "+ref.String(), func() (err error) {
		answer, err = o.Objects.PatchObject(ctx, ref, patch)
		return err
	})
	return answer, err
}

func (o mortalObjects) DeleteObject(ctx context.Context, ref kube.Ref, uid string) error {
	return o.fuse.Around("delete "+ref.String(), func() error { return o.Objects.DeleteObject(ctx, ref, uid) })
}

func (o mortalObjects) EndObject(ctx context.Context, ref kube.Ref, uid string, grace time.Duration) error {
	return o.fuse.Around("end "+ref.String(), func() error { return o.Objects.EndObject(ctx, ref, uid, grace) })
}
