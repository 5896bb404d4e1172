package primary

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// pass renews the certificates that are due. c is the record of a rotation that was interrupted before it restarted a
// component, or nil.
func (r *run) pass(ctx context.Context, c *record) error {
	due, err := r.due(ctx)
	if err != nil {
		return err
	}
	if c != nil { // renewing again would lose the copies of the old files
		due = slices.DeleteFunc(due, func(h held) bool {
			i := c.file(h.path)
			return i >= 0 && c.Files[i].Fingerprint == certificates.Fingerprint(h.leaf)
		})
	}
	if r.unwell = r.askBeforeRestart(ctx, due); ctx.Err() != nil {
		return fmt.Errorf("interrupted before anything was changed: %w", ctx.Err())
	}
	var prepared []made
	err = r.withFileLocks(func() error {
		if err := r.removeLeftovers(); err != nil {
			return err
		}
		prepared = r.prepareAll(due)
		if c == nil && len(prepared) == 0 {
			return nil
		}
		if c == nil {
			c = &record{ID: r.newID()}
		}
		prepared = r.prepareRestarts(c, prepared)
		if len(c.Files)+len(prepared) == 0 {
			c = nil
			return nil
		}
		if err := r.recordPlan(c, prepared); err != nil {
			return err
		}
		r.swapAll(c, prepared)
		return nil
	})
	switch {
	case err != nil:
		return errors.Join(err, discard(prepared, func(made) bool { return true }), r.discardManifests())
	case c == nil:
		return nil
	}
	return r.settle(ctx, c)
}

// prepareAll prepares a new certificate for each item that is due. It reads each item again under the lock, so that it
// keeps changes by other programs, and skips certificates that other programs have renewed.
func (r *run) prepareAll(due []held) (prepared []made) {
	for _, seen := range due {
		old, err := seen.read(r.at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!r.isDue(old.leaf, r.ByHand) || r.renewedSince(seen, old)) {
			continue
		}
		var m made
		if err == nil {
			m, err = r.renew(old)
		}
		if err == nil {
			err = r.prepare(&m)
		}
		if err != nil {
			r.fail(err)
			continue
		}
		prepared = append(prepared, m)
	}
	return prepared
}

func (r *run) isDue(leaf *x509.Certificate, asked bool) bool {
	return r.IsDue(leaf.NotBefore, leaf.NotAfter, r.Now(), r.TTL, asked)
}

// renewedSince reports whether another program has renewed the certificate between the reads seen and now.
func (r *run) renewedSince(seen, now held) bool {
	return !now.leaf.Equal(seen.leaf) && !r.isDue(now.leaf, false)
}

// due reads all items, and returns the items that must be renewed.
func (r *run) due(ctx context.Context) (due []held, err error) {
	var early []error
	server := ""
	defer func() {
		if len(r.result.Missing) == len(items) {
			err = fmt.Errorf("%s has none of the certificates of a control plane; run the command on a primary", r.Dir)
		}
	}()
	for _, i := range items {
		h, err := i.read(r.at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.say("Missing %s: skipped", r.at(i.mainFile()))
			r.result.Missing = append(r.result.Missing, i.mainFile())
			continue
		case err != nil:
			r.fail(err)
			continue
		}
		if h.item.kubeconfig() && (server == "" || h.component == controllerManager) { // controllerManager's kubeconfig comes first, because administrators do not edit it
			server = h.kubeconfig.Server
		}
		switch ends := h.leaf.NotAfter.UTC().Format(time.RFC3339); {
		case r.Now().Add(certificates.Back).Before(h.leaf.NotBefore):
			early = append(early, fmt.Errorf("%s is not valid before %s; check the clock; if it is right, recreate the certificate with kubeadm",
				r.at(i.mainFile()), h.leaf.NotBefore.UTC().Format(time.RFC3339)))
		case !r.isDue(h.leaf, r.ByHand):
			r.say("Kept %s: it expires at %s", r.at(i.mainFile()), ends)
		default:
			due = append(due, h)
		}
	}
	return due, r.clock(ctx, server, early, len(due) > 0)
}

// clock returns an error if the host's clock is wrong, because then nothing must be renewed. It compares the clock with
// the API server's clock. If the API server does not answer, it uses certificates that are not valid yet as a sign of a
// wrong clock.
func (r *run) clock(ctx context.Context, server string, early []error, due bool) error {
	compared := false
	if due && r.ServerTime != nil && server != "" {
		asked := r.Now()
		switch answer, err := r.ServerTime(ctx, server); {
		case err != nil:
			r.say("The clock was not compared with the API server's: %s", err)
		case answer.Sub(asked).Abs() > certificates.Back:
			return fmt.Errorf("the clock of this host and that of the API server are %s apart; nothing is renewed until one of them is corrected",
				answer.Sub(asked).Abs().Round(time.Minute))
		default:
			compared = true
		}
	}
	if len(early) > 0 && due && !compared {
		return fmt.Errorf("the clock may be wrong, so nothing is renewed: %w", errors.Join(early...))
	}
	for _, err := range early {
		r.fail(err)
	}
	return nil
}

// recordPlan writes the record and copies the old files, before the rotation makes the changes.
func (r *run) recordPlan(c *record, prepared []made) (err error) {
	_, absent := os.Lstat(r.copies(c.ID))
	defer func() {
		if err != nil && errors.Is(absent, fs.ErrNotExist) {
			err = errors.Join(err, os.RemoveAll(r.copies(c.ID)))
		}
	}()
	var files []string
	for _, m := range prepared {
		files = append(files, m.old.item.files()...)
		c.Files = slices.DeleteFunc(c.Files, func(f changed) bool { return f.Path == m.old.path })
		c.Files = append(c.Files, changed{m.old.path, certificates.Fingerprint(m.leaf)})
	}
	for _, one := range c.Components {
		files = append(files, manifestOf(one.Name))
	}
	if err := r.keepOld(c, files...); err != nil {
		return err
	}
	return r.write(c)
}

// prepareRestarts prepares the restarts before the files are replaced, so that errors appear in time. It returns the
// certificates whose components can be restarted.
func (r *run) prepareRestarts(c *record, prepared []made) (fine []made) {
	before := c.Components
	c.Components = nil
	for _, name := range components() {
		mine := func(m made) bool { return m.old.component == name }
		if !slices.ContainsFunc(prepared, mine) && len(c.of(name)) == 0 {
			continue
		}
		expired := slices.ContainsFunc(before, func(other restart) bool { return other.Name == name && other.Expired }) ||
			slices.ContainsFunc(prepared, func(m made) bool { return mine(m) && r.Now().After(m.old.leaf.NotAfter) })
		var one *restart
		err := cmp.Or(r.unwell[name], r.unwell[apiServer])
		if err == nil || expired || len(c.of(name)) > 0 {
			one, err = r.restart(c, name)
		}
		if err != nil {
			r.unsettled = r.unsettled || len(c.of(name)) > 0
			r.fail(errors.Join(err, discard(prepared, mine)))
			prepared = slices.DeleteFunc(prepared, mine)
			continue
		}
		if one == nil {
			continue
		}
		one.Expired = expired
		c.Components = append(c.Components, *one)
	}
	return prepared
}

// askBeforeRestart returns, by component, the errors of components that do not answer before their restart: EKCO could
// not check these components after a restart. It asks no component if an administrator runs the rotation.
func (r *run) askBeforeRestart(ctx context.Context, due []held) map[string]error {
	unwell := map[string]error{}
	for _, name := range components() {
		static, err := r.static(name)
		if err != nil || !static.canBeChecked() || r.ByHand || !slices.ContainsFunc(due, func(h held) bool { return h.component == name || h.component != "" && name == apiServer }) {
			continue
		}
		static.Serves = "" // before the restart, any certificate is correct
		if err := r.answersSoon(ctx, static); err != nil {
			unwell[name] = fmt.Errorf("%s does not answer, so EKCO does not restart it or the components that need it for new certificates: %w", name, err)
		}
	}
	return unwell
}

// answersSoon asks a few times, because one answer may be lost.
func (r *run) answersSoon(ctx context.Context, of Static) (err error) {
	next := time.NewTicker(pollInterval)
	defer next.Stop()
	for range minAnswers {
		if err = r.Kubelet.Answers(ctx, of); err == nil {
			return nil
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// restart prepares the restart of a component. It returns nil if the component is not on this host.
func (r *run) restart(c *record, name string) (*restart, error) {
	static, err := r.checkableStatic(name)
	if errors.Is(err, fs.ErrNotExist) {
		r.say("Missing %s: restart %s yourself", r.at(manifestOf(name)), name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pods, err := r.Kubelet.Pods(static)
	if err != nil {
		return nil, err
	}
	one := restart{Name: name}
	for _, pod := range pods {
		one.Before = append(one.Before, pod.UID)
	}
	return &one, r.prepareManifest(name, c.ID)
}

func discard(prepared []made, which func(made) bool) (err error) {
	for _, m := range prepared {
		if which(m) {
			err = errors.Join(err, m.discard())
		}
	}
	return err
}

// swapAll replaces all prepared files. It continues if a replacement fails.
func (r *run) swapAll(c *record, prepared []made) {
	for _, m := range prepared {
		if err := r.swap("swap", m.prepared); err != nil {
			r.fail(fmt.Errorf("replace %s: %w", r.at(m.old.mainFile()), errors.Join(err, m.discard(), r.undo(m))))
			i := c.file(m.old.path)
			c.Files = slices.Delete(c.Files, i, i+1)
			continue
		}
		r.result.Rotated = append(r.result.Rotated, m.old.mainFile())
		r.say("Rotated %s: it expires at %s", r.at(m.old.mainFile()), m.leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// undo restores an item's old files after only one of them was replaced.
func (r *run) undo(m made) error {
	for i, path := range m.old.item.files() {
		temp, err := r.prepareFile(r.at(path), m.old.files[i].Content)
		if err == nil {
			err = temp.Swap()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
