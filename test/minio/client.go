package miniotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"testing"
	"time"
)

// Client is mc, MinIO's client. It checks results independently of EKCO.
type Client struct {
	t       testing.TB
	program string
	dir     string
	env     []string
}

// NewClient returns a client that knows the stores by these names.
func NewClient(t testing.TB, programs Programs, stores map[string]*Store) *Client {
	t.Helper()
	urls := map[string]string{}
	for name, store := range stores {
		urls[name] = store.URL()
	}
	return NewClientAt(t, programs, urls)
}

// NewClientAt is [NewClient] with the stores' URLs.
func NewClientAt(t testing.TB, programs Programs, stores map[string]string) *Client {
	t.Helper()
	c := &Client{t: t, program: programs.Client, dir: t.TempDir()}
	for name, store := range stores {
		at, err := url.Parse(store)
		if err != nil {
			t.Fatal(err)
		}
		at.User = url.UserPassword(AccessKey, SecretKey)
		c.env = append(c.env, "MC_HOST_"+name+"="+at.String())
	}
	return c
}

// Run runs a command and returns its standard output. The test ends if the command fails.
func (c *Client) Run(args ...string) string {
	c.t.Helper()
	output, err := c.run(args...)
	if err != nil {
		c.t.Fatalf("mc %q: %v\n%s", args, err, output)
	}
	return output
}

func (c *Client) run(args ...string) (string, error) {
	command := exec.CommandContext(c.t.Context(), c.program, append([]string{"--config-dir", c.dir, "--disable-pager", "--quiet"}, args...)...)
	command.Env = append(command.Environ(), c.env...)
	output, err := command.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		output = append(output, ended.Stderr...)
	}
	return string(output), err
}

// Diff returns the differences between the newest objects of two paths in name, size and kind. It returns "" if there
// are none.
func (c *Client) Diff(one, other string) string {
	c.t.Helper()
	return c.Run("diff", one, other)
}

// Version is a version of an object as mc lists it.
type Version struct {
	Key          string    `json:"key"`
	Type         string    `json:"type"`
	Size         int64     `json:"size"`
	ETag         string    `json:"etag"`
	VersionID    string    `json:"versionId"`
	Ordinal      int       `json:"versionOrdinal"`
	Index        int       `json:"versionIndex"`
	DeleteMarker bool      `json:"isDeleteMarker"`
	LastModified time.Time `json:"lastModified"`
}

// Versions lists every version under a path, the newest of each object first.
func (c *Client) Versions(path string) []Version {
	c.t.Helper()
	output := c.Run("ls", "--json", "--recursive", "--versions", path)
	var versions []Version
	for decoder := json.NewDecoder(bytes.NewBufferString(output)); decoder.More(); {
		var v Version
		if err := decoder.Decode(&v); err != nil {
			c.t.Fatalf("read mc's list of %s: %v", path, err)
		}
		versions = append(versions, v)
	}
	return versions
}
