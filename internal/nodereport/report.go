package nodereport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// Report is the state of a host. It must fit into the outcome of a host task. So of a long list it has only some
// entries (for example, the certificates that expire first) and the number of the others.
type Report struct {
	Kernel string `json:"kernel,omitempty"`
	// ClockAhead is how far the host's clock is ahead of the API server's, in seconds.
	ClockAhead *journal.Duration `json:"clock_ahead,omitempty"`
	// Disks are the file systems of these directories, if they exist.
	Disks []Disk `json:"disks,omitempty"`
	// Certificates are in the order of their paths.
	Certificates        []Certificate `json:"certificates,omitempty"`
	OmittedCertificates int           `json:"more_certificates,omitempty"`
	// Ceph are the mounted volumes of Ceph.
	Ceph              []Mount `json:"ceph,omitempty"`
	OmittedCephMounts int     `json:"more_ceph,omitempty"`
	// Missing lists what could not be read, and why.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is something that could not be read, and why.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Root is the directory in the pod with the host's files.
const Root = "/host"

// The directories whose file systems are reported.
var directories = []string{"/var/lib/ekco", "/var/lib/etcd"}

// Paths are the mounts that a host task needs. All of them exist on every node of kubeadm.
func Paths() []hosttask.Path {
	paths := []hosttask.Path{
		{Host: "/etc/kubernetes", Type: "Directory"},
		// The directories below it are not on every node, and a mount must not create them.
		{Host: "/var/lib", Type: "Directory"},
		{Host: mounts, Type: "File"},
	}
	for i := range paths {
		paths[i].At = filepath.Join(Root, paths[i].Host)
	}
	return paths
}

// Host is the host to read.
type Host struct {
	// Root is the prefix of its files.
	Root string
	// Kernel returns the kernel's release, and ServerTime the API server's time in seconds.
	Kernel     func() (string, error)
	ServerTime func(ctx context.Context) (time.Time, error)
}

// ReadWithin is Read with a timeout, for a file system that hangs. It then returns an error, while the read
// continues.
func (h Host) ReadWithin(ctx context.Context, limit time.Duration) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	read := make(chan Report, 1)
	go func() { read <- h.Read(ctx) }()
	select {
	case r := <-read:
		return r, nil
	case <-ctx.Done():
		return Report{}, fmt.Errorf("reading the host takes longer than %s; look for a hanging file system on the host", limit)
	}
}

// Read reads everything that can be read.
func (h Host) Read(ctx context.Context) Report {
	var r Report
	var err error
	if r.Kernel, err = h.Kernel(); err != nil {
		h.addMissing(&r, "kernel", err)
	}
	if r.ClockAhead, err = h.clockAhead(ctx); err != nil {
		h.addMissing(&r, "clock", err)
	}
	for _, directory := range directories {
		disk, there, err := h.disk(directory)
		switch {
		case err != nil:
			h.addMissing(&r, "disk of "+directory, err)
		case there:
			r.Disks = append(r.Disks, disk)
		}
	}
	h.certificates(&r)
	h.ceph(&r)
	r.fit()
	return r
}

// fit makes the report small enough for the journal. Names can be long, and longer as JSON.
func (r *Report) fit() {
	for r.tooLarge() && len(r.Ceph)+len(r.Certificates)+len(r.Missing) > 0 {
		half := len(r.Ceph) / 2
		r.OmittedCephMounts += len(r.Ceph) - half
		r.Ceph = r.Ceph[:half]
		if !r.tooLarge() {
			return
		}
		r.keepCertificates(len(r.Certificates) / 2)
		if len(r.Ceph)+len(r.Certificates) == 0 && r.tooLarge() {
			r.Missing = r.Missing[:len(r.Missing)/2]
		}
	}
}

func (r *Report) tooLarge() bool {
	raw, err := json.Marshal(r)
	return err == nil && len(raw) > hosttask.MaxResult
}

// maxText is the maximum length of names of files, and of reasons, in bytes.
const maxText = 200

func truncated(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// maxMissing is the maximum number of reported failures.
const maxMissing = 10

// addMissing adds something that could not be read.
func (h Host) addMissing(r *Report, what string, why error) {
	if len(r.Missing) < maxMissing {
		r.Missing = append(r.Missing, Missing{truncated(what), truncated(h.reason(why))})
	}
}

// reason returns the error with paths of the host, not of the pod.
func (h Host) reason(why error) string {
	text := why.Error()
	if e, is := errors.AsType[*fs.PathError](why); is {
		text = strings.ReplaceAll(text, e.Path, h.onHost(e.Path))
	}
	if errors.Is(why, fs.ErrPermission) {
		text += "; the report runs as root without capabilities; the file's mode or SELinux forbids that"
	}
	return text
}

// clockTimeout is the timeout for the API server's time. It is short, because the other facts need time, too.
const clockTimeout = 5 * time.Second

// clockAhead returns how far this host's clock is ahead. It compares the clocks at the middle of the request.
func (h Host) clockAhead(ctx context.Context) (*journal.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	asked := time.Now()
	theirs, err := h.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(asked)
	ahead := journal.Duration(asked.Add(took / 2).Sub(theirs).Round(time.Second))
	return &ahead, nil
}

// Of decodes the report of a host task.
func Of(result json.RawMessage) (Report, error) {
	var r Report
	if err := json.Unmarshal(result, &r); err != nil {
		return Report{}, fmt.Errorf("read the report of a node: %w", err)
	}
	return r, nil
}
