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

// Report is what is found on a host. It fits into the outcome of a host task: of what a host
// can have many of, some are told, of certificates those that expire first, and how many more
// there are.
type Report struct {
	Kernel string `json:"kernel,omitempty"`
	// ClockAhead is by how much the host's clock is ahead of the API server's, to a second.
	ClockAhead *journal.Duration `json:"clock_ahead,omitempty"`
	// Disks are the file systems that hold these directories, as far as there are any.
	Disks []Disk `json:"disks,omitempty"`
	// Certificates are in the order of their paths.
	Certificates     []Certificate `json:"certificates,omitempty"`
	MoreCertificates int           `json:"more_certificates,omitempty"`
	// Ceph are volumes of Ceph that are mounted.
	Ceph     []Mount `json:"ceph,omitempty"`
	MoreCeph int     `json:"more_ceph,omitempty"`
	// Missing says what could not be had, and why.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is what could not be had.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Root is where a pod has the host's files.
const Root = "/host"

// Directories whose file systems are told.
var directories = []string{"/var/lib/ekco", "/var/lib/etcd"}

// Paths are what a host task must have of its host. All are there on every node that
// kubeadm made.
func Paths() []hosttask.Path {
	paths := []hosttask.Path{
		{Host: "/etc/kubernetes", Type: "Directory"},
		// The directories below it are not on every node, and must not be made.
		{Host: "/var/lib", Type: "Directory"},
		{Host: mounts, Type: "File"},
	}
	for i := range paths {
		paths[i].At = filepath.Join(Root, paths[i].Host)
	}
	return paths
}

// Host is what is read.
type Host struct {
	// Root is the prefix of its files.
	Root string
	// Kernel returns the release of its kernel, and ServerTime the API server's time, to a
	// second.
	Kernel     func() (string, error)
	ServerTime func(ctx context.Context) (time.Time, error)
}

// ReadWithin is Read with a limit: a file system that hangs keeps nobody waiting. It then
// returns an error, and goes on by itself.
func (h Host) ReadWithin(ctx context.Context, limit time.Duration) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	read := make(chan Report, 1)
	go func() { read <- h.Read(ctx) }()
	select {
	case r := <-read:
		return r, nil
	case <-ctx.Done():
		return Report{}, fmt.Errorf("reading what is on the host takes longer than %s; look for a file system there that hangs", limit)
	}
}

// Read reads all that can be had.
func (h Host) Read(ctx context.Context) Report {
	var r Report
	var err error
	if r.Kernel, err = h.Kernel(); err != nil {
		h.lacks(&r, "kernel", err)
	}
	if r.ClockAhead, err = h.clockAhead(ctx); err != nil {
		h.lacks(&r, "clock", err)
	}
	for _, directory := range directories {
		disk, there, err := h.disk(directory)
		switch {
		case err != nil:
			h.lacks(&r, "disk of "+directory, err)
		case there:
			r.Disks = append(r.Disks, disk)
		}
	}
	h.certificates(&r)
	h.ceph(&r)
	r.fit()
	return r
}

// fit makes the report small enough to go on record. Names can be long, and longer as JSON.
func (r *Report) fit() {
	for r.tooLarge() && len(r.Ceph)+len(r.Certificates)+len(r.Missing) > 0 {
		half := len(r.Ceph) / 2
		r.MoreCeph += len(r.Ceph) - half
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

// maxText bounds what a host's files are called, and why something lacks, in bytes.
const maxText = 200

func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// mostMissing bounds what is told of what could not be had.
const mostMissing = 10

// lacks tells what could not be had.
func (h Host) lacks(r *Report, what string, why error) {
	if len(r.Missing) < mostMissing {
		r.Missing = append(r.Missing, Missing{bounded(what), bounded(h.reason(why))})
	}
}

// reason names a path as the host has it, and not as the pod.
func (h Host) reason(why error) string {
	text := why.Error()
	if e, is := errors.AsType[*fs.PathError](why); is {
		text = strings.ReplaceAll(text, e.Path, h.onHost(e.Path))
	}
	if errors.Is(why, fs.ErrPermission) {
		text += "; the report is root without capabilities, which its mode or SELinux refuses"
	}
	return text
}

// clockTimeout bounds the question for the API server's time: one that does not answer leaves
// time for the rest.
const clockTimeout = 5 * time.Second

// clockAhead compares the clocks in the middle of the question.
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

// Of reads a report that a host task gave.
func Of(result json.RawMessage) (Report, error) {
	var r Report
	if err := json.Unmarshal(result, &r); err != nil {
		return Report{}, fmt.Errorf("read the report of a node: %w", err)
	}
	return r, nil
}
