package minio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// sides has the two stores of a migration. It keeps their credentials until it is closed.
type sides struct {
	pod    minio.SinglePod
	source minio.Store
	target *fencedStore
	// id is the deployment id of the source. targetID is the deployment id of the target.
	id, targetID string
	listener     *listener
}

// mayRemove reports whether EKCO may remove a version from the copy because the source no longer has it.
func (s sides) mayRemove(bucket string, v s3.Version) bool {
	return s.listener.isRemoved(bucket, v) || s.target.released(replica.Item{Bucket: bucket, Version: v}.String())
}

func (s sides) close() {
	s.source.Close()
	s.target.Close()
}

// noSourceError reports that standalone MinIO does not serve.
type noSourceError struct{ lacks string }

func (e noSourceError) Error() string {
	return "standalone MinIO, which has all data, does not serve: " + e.lacks
}

// otherSourceError reports that standalone MinIO serves another store than the one that EKCO copied. Such a store may
// be empty, and EKCO would then remove everything that it copied.
type otherSourceError struct{ pod, is, was string }

func (e otherSourceError) Error() string {
	return fmt.Sprintf("pod %s of standalone MinIO serves another data store than before: its deployment id is %s, and was %s; "+
		"attach its former volume again", e.pod, e.is, e.was)
}

// otherTargetError reports that the highly available MinIO is not the store to which EKCO copied, for example because
// its volumes were emptied.
type otherTargetError struct{ is, was string }

func (e otherTargetError) Error() string {
	return fmt.Sprintf("ha-minio serves another data store than the one EKCO copied to: its deployment id is %s, and was %s; "+
		"attach the former volumes of its pods again; before the switch you can also cancel this action, and EKCO copies everything again", e.is, e.was)
}

// open connects to the serving pod and to the replicas. It returns an error if one of them has another store than the
// recorded one.
func (m *migrator) open(ctx context.Context, record journal.ActionRecord) (sides, error) {
	single, err := m.api.Single(ctx)
	if err != nil {
		return sides{}, err
	}
	pod, serves := single.Serving()
	if !serves {
		return sides{}, noSourceError{single.Lacks()}
	}
	return m.openPod(ctx, pod, record)
}

// openPod is [migrator.open] for a given pod of standalone MinIO.
func (m *migrator) openPod(ctx context.Context, pod minio.SinglePod, record journal.ActionRecord) (sides, error) {
	both, err := m.connect(ctx, pod)
	if err != nil {
		return sides{}, err
	}
	if err = both.identify(ctx, record); err == nil {
		// Without this check EKCO would remove data that clients wrote to the target in between, because the source
		// lacks it.
		both.target.service.version, err = lastSourceVersion(record)
	}
	if err == nil {
		both.target.released, err = m.releasedItems(record)
	}
	if err == nil {
		both.listener = m.listener
		err = m.listener.listen(ctx, pod, both.id, func() (minio.Store, error) { return m.connectSource(ctx, pod) })
	}
	if err != nil {
		both.close()
		return sides{}, err
	}
	return both, nil
}

// identify reads the ids of both stores. They must be the recorded ids.
func (s *sides) identify(ctx context.Context, record journal.ActionRecord) error {
	source, target, err := storesOf(record)
	if err != nil {
		return err
	}
	return s.requireIDs(ctx, source, target)
}

// requireIDs returns an error unless both stores have the given ids. An empty id matches every store.
func (s *sides) requireIDs(ctx context.Context, source, target string) (err error) {
	if s.id, err = idOf(ctx, "standalone MinIO", s.source); err != nil {
		return err
	}
	if source != "" && source != s.id {
		return otherSourceError{s.pod.Name, s.id, source}
	}
	if s.targetID, err = idOf(ctx, "ha-minio", s.target); err != nil {
		return err
	}
	if target != "" && target != s.targetID {
		return otherTargetError{s.targetID, target}
	}
	return nil
}

// idOf returns the deployment id of a MinIO. The id is on the volumes, so new volumes have another id.
func idOf(ctx context.Context, side string, store minio.Store) (string, error) {
	server, err := store.Server(ctx)
	if err == nil && server.Deployment == "" {
		err = errors.New("it reports no deployment id, so EKCO cannot tell which data it has")
	}
	if err != nil {
		return "", sideError{side, err}
	}
	return server.Deployment, nil
}

// storesOf returns the recorded ids of both stores, or "". The ids of an earlier migration are used if nothing is left
// to copy.
func storesOf(record journal.ActionRecord) (source, target string, err error) {
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil || prepared.Source != "" {
		return prepared.Source, prepared.Target, err
	}
	plan, err := planOf(record)
	if err != nil || !plan.HandOver {
		return "", "", err
	}
	if plan.From != "" && plan.From != plan.Deployment {
		plan.Source = "" // this id is of the store of an earlier Deployment
	}
	compared, err := outputOf[journal.MinioCompared](record, journal.StepCompareMinio)
	return cmp.Or(compared.Store, plan.Source), cmp.Or(compared.Target, plan.Target), err
}

// fingerprint combines the fingerprint of all objects of standalone MinIO with the fingerprint of its users, groups and
// policies.
func (s sides) fingerprint(ctx context.Context, objects replica.Fingerprint) (string, error) {
	all, err := s.source.ExportIAM(ctx)
	if err != nil {
		return "", err
	}
	return objects.String() + "-" + listKey(all.NotIn(&s3.IAM{})), nil
}

// sideError names the side that did not answer as expected.
type sideError struct {
	side string
	error
}

func (e sideError) Error() string {
	if errors.Is(e.error, s3.ErrDenied) {
		return e.side + " does not accept the credentials of Secret minio-credentials; correct those, or restart it with them"
	}
	return fmt.Sprintf("%s does not answer: %v", e.side, e.error)
}

func (e sideError) Unwrap() error { return e.error }

func (e sideError) Key() string {
	if errors.Is(e.error, s3.ErrDenied) {
		return "credentials"
	}
	return "answer"
}

// connect creates clients of both sides.
func (m *migrator) connect(ctx context.Context, pod minio.SinglePod) (sides, error) {
	target, err := m.connectTarget(ctx)
	if err != nil {
		return sides{}, err
	}
	source, err := m.connectSource(ctx, pod)
	if err != nil {
		target.Close()
		return sides{}, err
	}
	return sides{pod: pod, source: source, target: target}, nil
}

// connectSource creates a client of standalone MinIO.
func (m *migrator) connectSource(ctx context.Context, pod minio.SinglePod) (minio.Store, error) {
	credentials, err := m.api.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	return m.Stores.Store([]string{pod.Address}, credentials)
}

// connectTarget creates a client of the replicas.
func (m *migrator) connectTarget(ctx context.Context) (*fencedStore, error) {
	addresses, err := m.api.Targets(ctx)
	if err != nil {
		return nil, err
	}
	credentials, err := m.api.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	store, err := m.Stores.Store(addresses, credentials)
	if err != nil {
		return nil, err
	}
	service := newFence(m.api)
	service.trail = m.trail
	return &fencedStore{Store: store, service: service}, nil
}

// expectDisabled makes the fence of the target expect an open switch: the Service must select no pods, and have this
// resource version.
func (s sides) expectDisabled(version string) sides {
	s.target.service.expect(journal.MinioServiceDisabled, version)
	return s
}

// fencedStore is a target that EKCO can change only while the Service is as expected, so that EKCO never removes data
// that clients wrote. Between seeing an object and removing it, EKCO reads the Service. For changes that only add data,
// a read of the last second is enough.
type fencedStore struct {
	minio.Store
	service *fence
	// released reports whether a person released an item, by its name.
	released func(name string) bool
}

// maxReadAgeForAdds is the maximum age of the last read of the Service when EKCO makes a change that only adds data.
const maxReadAgeForAdds = time.Second

// Buckets omits the bucket of versions that EKCO set aside, because only the target has it.
func (f *fencedStore) Buckets(ctx context.Context) ([]string, error) {
	all, err := f.Store.Buckets(ctx)
	if err != nil || !slices.Contains(all, asideBucket) {
		return all, err
	}
	own, err := f.hasAside(ctx)
	return slices.DeleteFunc(all, func(bucket string) bool { return own && bucket == asideBucket }), err
}

// hasAside reports whether EKCO's bucket of set-aside versions exists. A client's bucket of that name does not count.
func (f *fencedStore) hasAside(ctx context.Context) (bool, error) {
	settings, err := f.Settings(ctx, asideBucket)
	if errors.Is(err, s3.ErrGone) {
		return false, nil
	}
	return s3.IsAside(settings), err
}

// errAside prevents that clients' objects mix with versions that EKCO set aside.
var errAside = fmt.Errorf("standalone MinIO has a bucket %[1]s of a client, and ha-minio has EKCO's bucket of that name; rename the client's bucket, or move the objects on ha-minio to another bucket and delete %[1]s there", asideBucket)

// changeIfAllowed makes a change of the target if the fence allows it.
func (f *fencedStore) changeIfAllowed(ctx context.Context, atMost time.Duration, change func() error) error {
	if err := f.service.check(ctx, atMost); err != nil {
		return err
	}
	return change()
}

func (f *fencedStore) CreateBucket(ctx context.Context, bucket string, locked bool) error {
	if bucket == asideBucket {
		if own, err := f.hasAside(ctx); err != nil || own {
			return cmp.Or(err, errAside)
		}
	}
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.CreateBucket(ctx, bucket, locked) })
}

func (f *fencedStore) RemoveBucket(ctx context.Context, bucket string) error {
	return f.changeIfAllowed(ctx, 0, func() error { return f.Store.RemoveBucket(ctx, bucket) })
}

func (f *fencedStore) Set(ctx context.Context, bucket string, name s3.SettingName, value string) error {
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.Set(ctx, bucket, name, value) })
}

func (f *fencedStore) Put(ctx context.Context, bucket string, v s3.Version, old *s3.Version, content io.Reader, unchecked bool) error {
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.Put(ctx, bucket, v, old, content, unchecked) })
}

func (f *fencedStore) Complete(ctx context.Context, bucket string, v s3.Version, upload string, parts []s3.Part) error {
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.Complete(ctx, bucket, v, upload, parts) })
}

func (f *fencedStore) PutMarker(ctx context.Context, bucket string, v s3.Version) error {
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.PutMarker(ctx, bucket, v) })
}

func (f *fencedStore) Annotate(ctx context.Context, bucket string, v s3.Version, old s3.Attributes) error {
	return f.changeIfAllowed(ctx, maxReadAgeForAdds, func() error { return f.Store.Annotate(ctx, bucket, v, old) })
}

func (f *fencedStore) Remove(ctx context.Context, bucket string, v s3.Version) error {
	return f.changeIfAllowed(ctx, 0, func() error { return f.Store.Remove(ctx, bucket, v) })
}

func (f *fencedStore) SetAside(ctx context.Context, bucket string, v s3.Version, to string) error {
	return f.changeIfAllowed(ctx, 0, func() error { return f.Store.SetAside(ctx, bucket, v, to) })
}

func (f *fencedStore) ImportIAM(ctx context.Context, want *s3.IAM, may func(name string) bool) (refused []string, err error) {
	err = f.changeIfAllowed(ctx, 0, func() error {
		refused, err = f.Store.ImportIAM(ctx, want, may)
		return err
	})
	return refused, err
}
