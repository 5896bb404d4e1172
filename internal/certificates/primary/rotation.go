package primary

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/hosttask"
)

// IsDue reports whether a certificate must be renewed, because at most ttl of its validity remains. asked is set if an
// administrator runs the rotation. Only then can a new certificate be due.
type IsDue func(notBefore, notAfter, now time.Time, ttl time.Duration, asked bool) bool

// Rotation renews certificates on a host. Dir, TTL, IsDue, Now, Kubelet and Say must be set.
type Rotation struct {
	// Dir is the directory of Kubernetes, /etc/kubernetes.
	Dir string
	// TTL and IsDue decide which certificates are due.
	TTL   time.Duration
	IsDue IsDue
	// ByHand is set if an administrator runs the rotation. Then every certificate that expires within TTL is renewed,
	// even a new certificate.
	ByHand bool
	Now    func() time.Time
	// ServerTime asks the API server at an address for its time. With nil, the clocks are not compared.
	ServerTime func(ctx context.Context, server string) (time.Time, error)
	Kubelet    Kubelet
	// Patience is the time limit for a component to work again after its restart; zero means 5 minutes. If a startup
	// probe allows more time, the limit is longer, up to [MaxPatience], unless an administrator has set it.
	Patience time.Duration
	// Say prints a line about a completed change.
	Say func(line string)
	// NewKey creates keys; nil means [certificates.NewKey].
	NewKey func(certificates.KeyKind) (crypto.Signer, error)
	// Only tests set before and writes: before is called before each effect, and writes replaces [durable.Prepare].
	before func(effect string)
	writes func(path string, content []byte) (durable.Replacement, error)
}

// Result is the result of a rotation.
type Result struct {
	// Rotated has the files with new certificates, Missing the files that do not exist, and Restarted the components
	// that work after their restart.
	Rotated   []string `json:"rotated,omitempty"`
	Missing   []string `json:"missing,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	// Down has the components that do not work after their restart. Failed has the errors. The rotation continues after
	// such errors.
	Down   []string `json:"down,omitempty"`
	Failed []string `json:"failed,omitempty"`
}

// TaskError returns the error of a host task that ran the rotation. It is set if some certificates were due but none
// was renewed, or if a component does not work after its restart. Other problems are only in the result.
func (r Result) TaskError(err error) error {
	why := strings.Join(r.Failed, "; ")
	switch {
	case len(r.Down) > 0:
		return &hosttask.WorseError{Err: errors.New(why)}
	case err != nil && len(r.Rotated) == 0:
		return errors.New(why)
	}
	return nil
}

// ErrFailed is the error of a rotation that is not complete.
var ErrFailed = errors.New("not all certificates that are due were renewed")

// run is a rotation in progress.
type run struct {
	Rotation
	authorities map[string]authority
	// manifests are the prepared manifests, by component.
	manifests map[string]preparedManifest
	result    Result
	// unsettled is set if the next rotation must continue this one.
	unsettled bool
	// unwell has the errors of components that did not answer before the rotation, by component.
	unwell map[string]error
	// apiAway is set if the API server does not answer after its old files were restored.
	apiAway bool
}

func (r *run) at(path string) string { return at(r.Dir)(path) }

func (r *run) effect(what string) {
	if r.before != nil {
		r.before(what)
	}
}

// prepareFile writes a file's new content next to it.
func (r *run) prepareFile(path string, content []byte) (durable.Replacement, error) {
	if r.writes != nil {
		return r.writes(path, content)
	}
	return durable.Prepare(path, content)
}

func (r *run) say(format string, args ...any) { r.Say(fmt.Sprintf(format, args...)) }

// fail adds an error to the result. The rotation continues.
func (r *run) fail(err error) {
	err = r.withOwnerAdvice(err)
	if err == nil || slices.Contains(r.result.Failed, err.Error()) { // one unreadable directory is the cause for each of its files
		return
	}
	r.say("Error: %s", err)
	r.result.Failed = append(r.result.Failed, err.Error())
}

// withOwnerAdvice adds advice to an error about a file that EKCO's pod may not change. The pod's only capability is
// CHOWN.
func (r *run) withOwnerAdvice(err error) error {
	if r.ByHand || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; EKCO's pod may change only files of root: make root the owner, or run on this host: ekco rotate-certs", err)
}

// failForNow adds an error to the result. The next rotation tries the failed change again.
func (r *run) failForNow(err error) {
	r.unsettled = true
	r.fail(err)
}

// Run renews the certificates that are due. If a part of the work fails, Run continues, puts the errors into the result
// and returns [ErrFailed]. Any other error means that the rotation ended early.
func (of Rotation) Run(ctx context.Context) (Result, error) {
	r := &run{Rotation: of, authorities: map[string]authority{}, manifests: map[string]preparedManifest{}}
	err := r.withRotationLock(ctx, func() error {
		interrupted, err := r.resume(ctx)
		if err != nil {
			return err
		}
		if err := r.pass(ctx, interrupted); err != nil {
			return err
		}
		return r.prune()
	})
	if err != nil {
		r.fail(err)
		return r.result, err
	}
	if len(r.result.Failed) > 0 {
		return r.result, ErrFailed
	}
	return r.result, nil
}

// withRotationLock calls do while no other rotation runs on the host. It waits for the end of another rotation, which
// may be an earlier task that EKCO no longer waits for.
func (r *run) withRotationLock(ctx context.Context, do func() error) error {
	if err := os.Mkdir(r.at(Copies), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create the directory for copies of the old certificates: %w", err)
	}
	lock, err := durable.Lock(ctx, r.at(Copies))
	if errors.Is(err, durable.ErrLocked) {
		return errors.New("another rotate-certs runs on this host; wait for its end")
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

// withFileLocks calls do with the locks of all directories. It ignores cancellation, because old files must be restored
// even then.
func (r *run) withFileLocks(do func() error) error {
	for _, dir := range []string{"", "pki", "pki/etcd", manifests} {
		lock, err := durable.Lock(context.Background(), r.at(dir))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // the work on each file there fails later
			continue
		}
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	return do()
}

// removeLeftovers removes the files that an interrupted rotation has prepared but not used.
func (r *run) removeLeftovers() error {
	var paths []string
	for _, i := range items {
		paths = append(paths, i.files()...)
	}
	for _, c := range components() {
		paths = append(paths, manifestOf(c))
	}
	for _, path := range paths {
		if err := durable.RemoveTemp(r.at(path)); err != nil && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove leftover files next to %s: %w", r.at(path), err)
		}
	}
	return nil
}

// restore restores an item's old files from their copies. If the disk is full, it moves the copies.
func (r *run) restore(c *record, i item) error {
	var prepared []durable.Replacement
	for _, path := range i.files() {
		content, err := durable.Read(r.copyOf(c, path), maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was moved back already
		}
		if err == nil {
			r.effect("prepare the old " + path)
			var temp durable.Replacement
			temp, err = r.prepareFile(r.at(path), content)
			prepared = append(prepared, temp)
		}
		if errors.Is(err, syscall.ENOSPC) {
			return r.moveBack(c, i)
		}
		if err != nil {
			return fmt.Errorf("restore %s from %s: %w", r.at(path), filepath.Dir(r.copyOf(c, path)), err)
		}
	}
	if len(prepared) == 0 {
		return nil
	}
	return r.swap("restore", prepared)
}

// moveBack moves the copies of an item to the places of its files.
func (r *run) moveBack(c *record, i item) error {
	for _, path := range i.files() {
		r.effect("move back " + path)
		if err := os.Rename(r.copyOf(c, path), r.at(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore %s: %w", r.at(path), err)
		}
		if err := durable.RemoveTemp(r.at(path)); err != nil {
			return fmt.Errorf("restore %s: %w", r.at(path), err)
		}
	}
	return nil
}

// replace replaces a file. The caller must hold the directory's lock.
func (r *run) replace(path string, content []byte) error {
	r.effect("prepare " + path)
	temp, err := r.prepareFile(r.at(path), content)
	if err != nil {
		return fmt.Errorf("replace %s: %w", r.at(path), err)
	}
	return r.swap("replace", []durable.Replacement{temp})
}

// swap replaces files by prepared ones.
func (r *run) swap(what string, prepared []durable.Replacement) error {
	r.effect(what + " " + prepared[0].Path)
	if r.before != nil { // a test checks the state between two renames
		for _, one := range prepared {
			if _, err := durable.SwapAll(one); err != nil {
				return err
			}
			r.effect(what + ", after " + one.Path)
		}
		return nil
	}
	_, err := durable.SwapAll(prepared...)
	return err
}
