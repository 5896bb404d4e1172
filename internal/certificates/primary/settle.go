package primary

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// MaxPatience is the longest time that a component may take to work again after its restart, even if its startup probe
// allows more. It limits the duration of a rotation, because a rotation that is killed while it waits cannot restore
// the old certificates.
const MaxPatience = 11 * time.Minute

const (
	// defaultPatience is the default of [Rotation.Patience]. kubeadm's startup probes allow 4 minutes.
	defaultPatience = 5 * time.Minute
	// startupMargin is the time in which a kubelet should notice the new manifest and end the old pod.
	startupMargin = time.Minute
	// pollInterval is the time between two checks. minAnswers is the number of checks that must succeed in a row.
	pollInterval = time.Second
	minAnswers   = 3
)

// settle restarts the components and waits until they work again. If a component does not work, settle restores its old
// files.
func (r *run) settle(ctx context.Context, c *record) error {
	for _, wave := range waves {
		var waiting []*waited
		for _, one := range c.Components {
			if !slices.Contains(wave, one.Name) {
				continue
			}
			w, err := r.begin(c, one)
			if err != nil {
				r.failForNow(err)
			}
			if w != nil {
				waiting = append(waiting, w)
			}
		}
		if err := r.await(ctx, c, waiting); err != nil {
			return err
		}
	}
	c.Done = !r.unsettled
	return r.write(c)
}

// waited is a component that settle waits for.
type waited struct {
	restart
	static Static
	since  time.Time
	// well is the number of successful checks in a row. last is the pod of the last check.
	well int
	last Pod
	// why is the reason why the last check failed. seen is the UID of the pod that the kubelet has created since the
	// restart.
	why  string
	seen string
}

// begin restarts a component. It returns nil if there is nothing to wait for.
func (r *run) begin(c *record, one restart) (*waited, error) {
	static, err := r.static(one.Name)
	if err != nil {
		return nil, err
	}
	marked, err := r.marked(one.Name)
	if err != nil {
		return nil, err
	}
	fresh, all := r.fresh(c, one.Name)
	w := &waited{restart: one, static: static, since: r.Now()}
	switch {
	case marked == c.ID && !all:
		// An earlier rotation was restoring its old files.
		w.seen = "?"
		return nil, r.restoreAll(c, w)
	case marked == c.ID:
		return w, nil
	case !fresh, marked == c.ID+restored:
		return nil, nil
	case r.apiAway:
		return nil, fmt.Errorf("%[2]s does not answer, so %[1]s, which needs it, is not restarted for its new certificates; repeat the rotation when %[2]s answers", one.Name, apiServer)
	}
	r.say("Restarting %s for its new certificates", one.Name)
	if err := r.mark(one.Name, c.ID); err != nil {
		return nil, fmt.Errorf("restart %s: %w", one.Name, errors.Join(err, r.restoreAll(c, w)))
	}
	return w, nil
}

// fresh reports whether some, and whether all, of a component's items have the new certificates.
func (r *run) fresh(c *record, component string) (some, all bool) {
	all = true
	for _, file := range c.of(component) {
		isNew := r.isNew(file)
		some, all = some || isNew, all && isNew
	}
	return some, all
}

func (r *run) isNew(file changed) bool {
	i, known := itemOf(file.Path)
	if !known {
		return false
	}
	live, err := i.read(r.at)
	return err == nil && certificates.Fingerprint(live.leaf) == file.Fingerprint
}

// await checks the components until each works again or its time limit is over.
func (r *run) await(ctx context.Context, c *record, waiting []*waited) error {
	next := time.NewTicker(pollInterval)
	defer next.Stop()
	for len(waiting) > 0 {
		select {
		case <-next.C:
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting for %s; repeat the rotation: %w", waiting[0].Name, ctx.Err())
		}
		waiting = slices.DeleteFunc(waiting, func(w *waited) bool { return r.settled(ctx, c, w) })
	}
	return nil
}

// settled checks a component, and reports whether settle need not wait for it any more.
func (r *run) settled(ctx context.Context, c *record, w *waited) bool {
	r.look(ctx, w)
	switch {
	case w.well >= minAnswers:
		r.say("Back: %s answers", w.Name)
		r.result.Restarted = append(r.result.Restarted, w.Name)
		return true
	case r.Now().Sub(w.since) < r.patience(w):
		return false
	}
	r.giveUp(ctx, c, w)
	return true
}

// patience returns the time limit for a component to work again. It is longer than the time limit of the startup probe,
// but at most [MaxPatience], unless an administrator has set it.
func (r *run) patience(w *waited) time.Duration {
	if r.ByHand && r.Patience > 0 {
		return r.Patience
	}
	return max(cmp.Or(r.Patience, defaultPatience), min(w.static.Startup+startupMargin, MaxPatience))
}

// look checks a component once.
func (r *run) look(ctx context.Context, w *waited) {
	pod, why := r.newPod(w)
	if why == "" {
		w.seen = pod.UID
		if err := r.Kubelet.Answers(ctx, w.static); err != nil {
			why = err.Error()
		}
	}
	switch {
	case why != "":
		w.well, w.why = 0, why
	case pod != w.last:
		w.well = 1 // the container has restarted, so count again
	default:
		w.well++
	}
	w.last = pod
}

// newPod returns the pod that the kubelet has created since the restart, or the reason why there is none.
func (r *run) newPod(w *waited) (Pod, string) {
	pods, err := r.Kubelet.Pods(w.static)
	if err != nil {
		return Pod{}, err.Error()
	}
	for _, pod := range pods {
		if !slices.Contains(w.Before, pod.UID) {
			return pod, ""
		}
	}
	return Pod{}, "the kubelet has not restarted it; check whether the kubelet runs, and whether the image in the manifest can be pulled"
}

// giveUp restores the old files of a component and reports why the component does not work. It does not restore expired
// files: then the next rotation checks again whether the component works.
func (r *run) giveUp(ctx context.Context, c *record, w *waited) {
	r.result.Down = append(r.result.Down, w.Name)
	why := fmt.Sprintf("%s has not come back with its new certificates within %s: %s", w.Name, r.patience(w), w.why)
	if words := r.Kubelet.LastWords(w.static, w.seen); words != "" {
		why += fmt.Sprintf("; the last line of its log: %q", words)
	}
	if w.Expired {
		r.failForNow(fmt.Errorf("%s; its old certificates have expired, and are not restored. The component may wait for other primaries whose certificates have expired, too: renew those, then repeat the rotation", why))
		return
	}
	if err := r.restoreAll(c, w); err != nil {
		r.failForNow(fmt.Errorf("%s; and its old certificates could not be restored; repeat the rotation: %w", why, err))
		return
	}
	after := r.awaitRestored(ctx, w)
	r.apiAway = r.apiAway || w.Name == apiServer && after != nil
	if after == nil {
		r.fail(fmt.Errorf("%s; its old certificates were restored, and it answers", why))
		return
	}
	r.fail(fmt.Errorf("%s; its old certificates were restored, but it does not answer yet: %w", why, after))
}

// restoreAll restores the old files of a component, and restarts it again if it was restarted.
func (r *run) restoreAll(c *record, w *waited) error {
	var put []string
	err := r.withFileLocks(func() error {
		for _, file := range c.of(w.Name) {
			i, known := itemOf(file.Path)
			if !known || !r.isNew(file) {
				continue
			}
			if err := r.restore(c, i); err != nil {
				return err
			}
			put = append(put, i.mainFile())
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.unmark(c, w); err != nil {
		return err
	}
	r.result.Rotated = slices.DeleteFunc(r.result.Rotated, func(path string) bool { return slices.Contains(put, path) })
	r.say("Restored %s for %s", strings.Join(put, ", "), w.Name)
	return nil
}

// unmark undoes the annotation. If the kubelet has not created another pod yet, unmark restores the old manifest, so
// that nothing restarts. Otherwise it sets another annotation, so that the kubelet creates another pod.
func (r *run) unmark(c *record, w *waited) error {
	file, manifest, err := r.manifest(w.Name)
	if err != nil || manifest.Annotations[Annotation] != c.ID {
		return err
	}
	if w.seen != "" {
		return r.mark(w.Name, c.ID+restored)
	}
	old, err := certificates.ReadFile(r.copyOf(c, manifestOf(w.Name)))
	if err != nil {
		return err
	}
	// Another program may have changed the manifest in the meantime.
	if own, err := old.Annotated(Annotation, c.ID); err != nil || !bytes.Equal(own, file.Content) {
		return r.mark(w.Name, c.ID+restored)
	}
	return r.withFileLocks(func() error { return r.replace(manifestOf(w.Name), old.Content) })
}

// awaitRestored waits until a component answers with its old files. It returns an error if the component does not.
func (r *run) awaitRestored(ctx context.Context, w *waited) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience(w)/3)
	defer cancel()
	next := time.NewTicker(pollInterval)
	defer next.Stop()
	for well := 0; ; {
		err := r.Kubelet.Answers(ctx, w.static)
		if well++; err != nil {
			well = 0
		}
		if well >= minAnswers {
			return nil
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			if err == nil {
				err = errors.New("it answered only for a moment")
			}
			return err
		}
	}
}

// resume continues an interrupted rotation. If no component was restarted yet, it returns the record, and pass
// continues the rotation.
func (r *run) resume(ctx context.Context) (*record, error) {
	c, err := r.open()
	if err != nil || c == nil {
		return nil, err
	}
	r.say("Continuing an earlier rotation that was interrupted")
	if err := r.mend(c); err != nil {
		return nil, err
	}
	for _, one := range c.Components {
		marked, err := r.marked(one.Name)
		if err != nil {
			continue // prepareRestarts reports the error
		}
		if strings.HasPrefix(marked, c.ID) {
			return nil, r.settle(ctx, c)
		}
	}
	c.Files = slices.DeleteFunc(c.Files, func(file changed) bool { return !r.isNew(file) })
	if len(c.Files) == 0 {
		c.Done = true
		return nil, r.write(c)
	}
	for _, file := range c.Files {
		if i, known := itemOf(file.Path); known {
			r.result.Rotated = append(r.result.Rotated, i.mainFile())
		}
	}
	return c, nil
}

// mend restores the old files of each item of which only one file was replaced.
func (r *run) mend(c *record) error {
	return r.withFileLocks(func() error {
		for _, file := range c.Files {
			i, known := itemOf(file.Path)
			if !known {
				continue
			}
			if _, err := i.read(r.at); !errors.Is(err, errNoPair) {
				continue
			}
			if err := r.restore(c, i); err != nil {
				return err
			}
			r.say("Repaired %s, of which only a part was replaced", r.at(i.mainFile()))
		}
		return nil
	})
}
