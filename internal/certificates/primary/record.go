package primary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/replicatedhq/ekco/internal/durable"
)

// Copies is the directory of the dated copies, relative to the directory of Kubernetes.
const Copies = "ekco-certificates"

const (
	recordName = "rotation.json"
	// maxCopies is the number of dated copies to keep.
	maxCopies = 3
	// maxFile is the maximum size of a file in bytes.
	maxFile = 256 << 10
)

// record describes the changes of a rotation. The rotation writes it before it changes anything. It contains no part of
// a key.
type record struct {
	// ID is the name of the directory with the dated copy, and the value of the annotation.
	ID string `json:"id"`
	// Done is set when the rotation is complete.
	Done       bool      `json:"done,omitempty"`
	Files      []changed `json:"files"`
	Components []restart `json:"components,omitempty"`
}

// changed is an item that gets another certificate.
type changed struct {
	Path string `json:"path"`
	// Fingerprint is the fingerprint of the new certificate.
	Fingerprint string `json:"fingerprint"`
}

// restart is a component that the rotation restarts.
type restart struct {
	Name string `json:"name"`
	// Before has the UIDs of the component's pods before the restart.
	Before []string `json:"before,omitempty"`
	// Expired is set if the component's old certificates have expired. Then they are not restored.
	Expired bool `json:"expired,omitempty"`
}

// of returns the changed items for which a component is restarted.
func (c *record) of(component string) (of []changed) {
	for _, file := range c.Files {
		if i, known := itemOf(file.Path); known && i.component == component {
			of = append(of, file)
		}
	}
	return of
}

func (c *record) file(path string) int {
	return slices.IndexFunc(c.Files, func(f changed) bool { return f.Path == path })
}

var idPattern = regexp.MustCompile(`^\d{8}T\d{6}Z(-\d+)?$`)

// ids lists the dated copies, the newest first.
func (r *run) ids() ([]string, error) {
	entries, err := os.ReadDir(r.at(Copies))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the copies of earlier certificates: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() && idPattern.MatchString(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}

func (r *run) copies(id string) string { return filepath.Join(r.at(Copies), id) }

// open returns the record of an interrupted rotation, or nil.
func (r *run) open() (*record, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		path := filepath.Join(r.copies(id), recordName)
		content, err := durable.Read(path, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			// The rotation was interrupted before it changed anything.
			if err := os.RemoveAll(r.copies(id)); err != nil {
				return nil, fmt.Errorf("remove a copy of certificates that was not finished: %w", err)
			}
			continue
		}
		var read record
		if err == nil {
			err = json.Unmarshal(content, &read)
		}
		if err != nil {
			return nil, fmt.Errorf("read the record of an earlier rotation in %s: %w; check the certificates yourself, then move the directory of the record away", path, err)
		}
		if !read.Done {
			read.ID = id
			return &read, nil
		}
	}
	return nil, nil
}

// newID returns a name for a new dated copy.
func (r *run) newID() string {
	stamp := r.Now().UTC().Format("20060102T150405Z")
	id := stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(r.copies(id)); err != nil {
			return id
		}
		id = stamp + "-" + strconv.Itoa(n)
	}
}

// write writes the record to its file.
func (r *run) write(c *record) error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		r.effect("write the record")
		err = durable.Replace(filepath.Join(r.copies(c.ID), recordName), append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the record of this rotation: %w", err)
	}
	return nil
}

// keepOld copies the old files.
func (r *run) keepOld(c *record, files ...string) error {
	for _, dir := range []string{r.at(Copies), r.copies(c.ID)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a copy of the old certificates: %w", err)
		}
	}
	for _, path := range files {
		r.effect("copy " + path)
		if err := durable.Copy(r.at(path), r.copyOf(c, path), maxFile); err != nil {
			return fmt.Errorf("make a copy of %s: %w", r.at(path), err)
		}
	}
	return nil
}

func (r *run) copyOf(c *record, path string) string {
	return filepath.Join(r.copies(c.ID), filepath.FromSlash(path))
}

// prune removes the oldest copies.
func (r *run) prune() error {
	ids, err := r.ids()
	if err != nil || len(ids) <= maxCopies {
		return err
	}
	for _, id := range ids[maxCopies:] {
		r.effect("remove copy " + id)
		if err := os.RemoveAll(r.copies(id)); err != nil {
			return fmt.Errorf("remove the oldest copy of certificates: %w", err)
		}
	}
	return nil
}
