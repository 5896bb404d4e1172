package miniosim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
)

// drives simulates the replicas' drives, which hold the objects of one bucket, and the scans in which the servers heal
// the drives.
type drives struct {
	// objects are all keys. lacks has, for each replica, the keys of which its drive has no part.
	objects []string
	lacks   map[string][]string
	// forever are the keys whose missing parts a scan cannot restore.
	forever []string
	// early is the number of objects that are left out when a new drive is filled.
	early int
	// passes are the current and ended scans, by replica. begun counts all scans.
	passes map[string]*healing
	begun  int
	// cut is the number of objects that a scan finds, or 0 for all. lost is the number of answers to lose.
	cut, lost int
	// denied is set when the servers refuse the credentials.
	denied bool
	// beforeAsk is called before each question about a scan.
	beforeAsk func()
}

// healing is a healing scan of one server.
type healing struct {
	token string
	left  []s3.HealItem
	last  int64
	ended bool
}

// Bucket is the bucket of the objects.
const Bucket = "data"

// newDrives returns drives with a few objects.
func newDrives() drives {
	d := drives{lacks: map[string][]string{}, passes: map[string]*healing{}}
	for i := range 12 {
		d.objects = append(d.objects, fmt.Sprint("object-", i))
	}
	return d
}

var _ minio.Healers = (*MinIO)(nil)

// Healer implements [minio.Healers].
func (m *MinIO) Healer(at string, with minio.Credentials) (minio.Healer, error) {
	return healer{m, at, with}, nil
}

type healer struct {
	m    *MinIO
	at   string
	with minio.Credentials
}

// reached calls do if the server answers and accepts the credentials.
func (h healer) reached(do func() error) error {
	running := h.m.running()
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if _, runs := running[h.at]; !runs || h.m.silent[h.at] {
		return fmt.Errorf("ask %s: %w", h.at, errNoServer)
	}
	if h.m.drives.denied || h.with != credentials {
		return fmt.Errorf("ask %s: %w", h.at, s3.ErrDenied)
	}
	return do()
}

func (h healer) Server(context.Context) (told s3.Server, err error) {
	running := h.m.running()
	err = h.reached(func() error {
		for name := range running {
			told.Drives = append(told.Drives, s3.Drive{Host: name, Works: !h.m.silent[name]})
		}
		return nil
	})
	return told, err
}

func (h healer) Buckets(context.Context) (buckets []string, err error) {
	err = h.reached(func() error {
		buckets = []string{Bucket}
		return nil
	})
	return buckets, err
}

func (h healer) Versions(_ context.Context, bucket, _ string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		var keys []string
		err := h.reached(func() error {
			keys = slices.Clone(h.m.drives.objects)
			if bucket != Bucket {
				return s3.ErrGone
			}
			return nil
		})
		if err != nil {
			yield(s3.Version{}, err)
			return
		}
		for _, key := range keys {
			if !yield(s3.Version{Key: key, ID: s3.NullVersion}, nil) {
				return
			}
		}
	}
}

func (h healer) BeginHeal(context.Context) (begun s3.HealBegun, err error) {
	running := h.m.running()
	err = h.reached(func() error {
		d := &h.m.drives
		if pass := d.passes[h.at]; pass != nil && !pass.ended {
			return s3.ErrHealing
		}
		d.begun++
		pass := &healing{token: fmt.Sprint("pass-", d.begun)}
		ok := make([]s3.DriveState, 0, len(running))
		for _, name := range slices.Sorted(maps.Keys(running)) {
			ok = append(ok, s3.DriveState{Drive: name, State: s3.DriveOK})
		}
		pass.left = append(pass.left, s3.HealItem{Kind: s3.HealedBucket, Bucket: Bucket, Before: ok, After: ok})
		for i, key := range d.objects {
			if d.cut == 0 || i < d.cut {
				pass.left = append(pass.left, s3.HealItem{Kind: s3.HealedObject, Bucket: Bucket, Key: key, Version: s3.NullVersion, Of: len(running), Before: ok})
			}
		}
		d.passes[h.at], begun = pass, s3.HealBegun{Token: pass.token, At: time.Now()}
		return nil
	})
	return begun, err
}

// atOnce is the number of items that are scanned between two questions.
const atOnce = 5

func (h healer) HealNews(_ context.Context, token string) (news s3.HealNews, err error) {
	if before := h.m.askedAbout(); before != nil {
		before()
	}
	err = h.reached(func() error {
		d := &h.m.drives
		pass := d.passes[h.at]
		if pass == nil || pass.token != token {
			return s3.ErrForgotten
		}
		n := min(atOnce, len(pass.left))
		for _, item := range pass.left[:n] {
			pass.last++
			item.Index = pass.last
			if item.Kind == s3.HealedObject {
				item.Before, item.After = d.restore(item)
			}
			news.Items = append(news.Items, item)
		}
		pass.left = pass.left[n:]
		pass.ended = pass.ended || len(pass.left) == 0
		if news.Ended = pass.ended; d.lost > 0 {
			d.lost--
			return errors.New("connection reset by peer")
		}
		return nil
	})
	return news, err
}

func (healer) Close() {}

// restore gives all drives their part of an object, if that is possible.
func (d *drives) restore(item s3.HealItem) (before, after []s3.DriveState) {
	before, after = slices.Clone(item.Before), slices.Clone(item.Before)
	for i, drive := range before {
		at := slices.Index(d.lacks[drive.Drive], item.Key)
		if at < 0 {
			continue
		}
		before[i].State = s3.DriveMissing
		if slices.Contains(d.forever, item.Key) {
			after[i].State = s3.DriveMissing
			continue
		}
		d.lacks[drive.Drive] = slices.Delete(slices.Clone(d.lacks[drive.Drive]), at, at+1)
	}
	return before, after
}

func (m *MinIO) askedAbout() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drives.beforeAsk
}

// with changes the drives.
func (m *MinIO) with(change func(d *drives)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.drives)
}

// Lacks returns the number of objects of which a replica's drive has no part.
func (m *MinIO) Lacks(i int) (n int) {
	m.with(func(d *drives) { n = len(d.lacks[minio.PodRef(Namespace, i).Name]) })
	return n
}

// LosePart removes the parts of a number of objects from a replica's drive.
func (m *MinIO) LosePart(i, objects int) {
	m.with(func(d *drives) { d.lacks[minio.PodRef(Namespace, i).Name] = slices.Clone(d.objects[:objects]) })
}

// FillEarly makes servers report a new drive as filled while it lacks its parts of a number of objects.
func (m *MinIO) FillEarly(objects int) { m.with(func(d *drives) { d.early = objects }) }

// Spoil prevents scans from restoring the parts of a number of objects.
func (m *MinIO) Spoil(objects int) {
	m.with(func(d *drives) { d.forever = slices.Clone(d.objects[:objects]) })
}

// CutPasses makes each scan find only a number of objects and report success; 0 means all objects.
func (m *MinIO) CutPasses(objects int) { m.with(func(d *drives) { d.cut = objects }) }

// LoseAnswers makes the next n answers about a scan get lost.
func (m *MinIO) LoseAnswers(n int) { m.with(func(d *drives) { d.lost = n }) }

// DenyHealer makes all servers refuse the credentials for scans, or accept them again.
func (m *MinIO) DenyHealer(denies bool) { m.with(func(d *drives) { d.denied = denies }) }

// ForgetPasses makes all servers forget their scans, as a restart does.
func (m *MinIO) ForgetPasses() { m.with(func(d *drives) { clear(d.passes) }) }

// StopPasses stops all scans, as if another client stopped them: the servers report their end and forget them a
// little later.
func (m *MinIO) StopPasses() {
	m.with(func(d *drives) {
		for _, pass := range d.passes {
			pass.ended, pass.left = true, nil
		}
	})
	time.AfterFunc(time.Second, m.ForgetPasses)
}

// BusyWithPasses makes all servers run a scan of another client, or ends these scans.
func (m *MinIO) BusyWithPasses(busy bool) {
	m.with(func(d *drives) {
		clear(d.passes)
		for i := range maxReplicas {
			if busy {
				d.passes[minio.PodRef(Namespace, i).Name] = &healing{token: "another's"}
			}
		}
	})
}

// Passes returns how many scans were started.
func (m *MinIO) Passes() (n int) {
	m.with(func(d *drives) { n = d.begun })
	return n
}

// Passers returns the replicas whose servers scan or have scanned.
func (m *MinIO) Passers() (passers []string) {
	m.with(func(d *drives) { passers = slices.Sorted(maps.Keys(d.passes)) })
	return passers
}

// BeforeAsk sets what is called before each question about a scan.
func (m *MinIO) BeforeAsk(do func()) { m.with(func(d *drives) { d.beforeAsk = do }) }
