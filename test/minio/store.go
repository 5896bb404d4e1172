package miniotest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/loopback"
)

// These are the credentials of every store's root user.
const (
	AccessKey = "kurl"
	SecretKey = "k7Gq2wXzP"
)

// limit is how long a store may take to be healthy. Normally it takes some seconds.
const limit = 5 * time.Minute

// Store is an object store of one or more servers that ends with its test.
type Store struct {
	t       testing.TB
	program string
	env     []string
	servers []*server
}

// server is one process of a store. Its data remains after the process ends.
type server struct {
	address, dir string
	process      *child.Process
}

// Start starts a store with this number of servers, and waits until it is healthy. env has more environment variables
// for the servers, as NAME=VALUE.
func Start(t testing.TB, programs Programs, servers int, env ...string) *Store {
	t.Helper()
	return StartAt(t, programs, Addresses(servers), env...)
}

// Addresses returns addresses for this number of servers, as HOST:PORT.
func Addresses(servers int) (addresses []string) {
	network := loopback.Network()
	for i := range servers {
		addresses = append(addresses, net.JoinHostPort(fmt.Sprint(network, i+1), "9000"))
	}
	return addresses
}

// StartAt is [Start] with the addresses of the servers, as HOST:PORT.
func StartAt(t testing.TB, programs Programs, addresses []string, env ...string) *Store {
	t.Helper()
	return StartIn(t, programs, Dir(t), addresses, env...)
}

// StartIn is [StartAt] with the directory in which the servers keep their data.
func StartIn(t testing.TB, programs Programs, dir string, addresses []string, env ...string) *Store {
	t.Helper()
	s := &Store{t: t, program: programs.Server, env: env}
	for i, address := range addresses {
		s.servers = append(s.servers, &server{address: address, dir: filepath.Join(dir, fmt.Sprint("d", i+1))})
	}
	for id := range s.servers {
		s.Run(id)
	}
	s.WaitHealthy()
	return s
}

// Run starts a server that does not run, without waiting for it.
func (s *Store) Run(id int) {
	s.t.Helper()
	one := s.servers[id]
	env := append([]string{
		"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey,
		"MINIO_UPDATE=off", "MINIO_BROWSER=off", "HOME=" + filepath.Dir(one.dir),
		// Without this, the servers refuse directories of one disk as disks.
		"MINIO_CI_CD=1",
		// Without this, each server waits forever to find out which address is its own, because all are on this
		// machine.
		"_MINIO_SERVER_LOCAL=" + one.address,
	}, s.env...)
	args := append([]string{"server", "--quiet", "--address", one.address}, s.volumes()...)
	one.process = child.StartWith(s.t, env, s.program, args...)
}

// volumes returns the arguments that name the volumes of all servers.
func (s *Store) volumes() []string {
	if len(s.servers) == 1 {
		return []string{s.servers[0].dir}
	}
	var volumes []string
	for _, one := range s.servers {
		volumes = append(volumes, "http://"+one.address+one.dir)
	}
	return volumes
}

// Kill kills servers, like a power failure.
func (s *Store) Kill(ids ...int) {
	for _, id := range ids {
		s.servers[id].process.Kill()
	}
}

// Stop ends servers, like the deletion of their pods.
func (s *Store) Stop(ids ...int) {
	s.t.Helper()
	for _, id := range ids {
		s.servers[id].process.Stop(limit)
	}
}

// Running reports whether a server runs.
func (s *Store) Running(id int) bool { return s.servers[id].process.Running() }

// Address returns the address on which a server listens, as HOST:PORT.
func (s *Store) Address(id int) string { return s.servers[id].address }

// Directory returns the data directory of a server.
func (s *Store) Directory(id int) string { return s.servers[id].dir }

// URL returns the URL of the first running server.
func (s *Store) URL() string {
	s.t.Helper()
	for id, one := range s.servers {
		if s.Running(id) {
			return "http://" + one.address
		}
	}
	s.t.Fatal("no server of the store runs")
	return ""
}

// WaitHealthy waits until every running server reports that the store is writable.
func (s *Store) WaitHealthy() {
	s.t.Helper()
	for id, one := range s.servers {
		if !s.Running(id) {
			continue
		}
		await.Until(s.t, limit, one.address+" is healthy", func() (bool, string) {
			seen := s.health(one)
			return seen == http.StatusText(http.StatusOK), seen
		})
	}
}

// health returns a server's report about the whole store.
func (s *Store) health(one *server) string {
	if !one.process.Running() {
		s.t.Fatalf("%s ended: %s", one.process, one.process.Output.Tail(2000))
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+one.address+"/minio/health/cluster", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err.Error()
	}
	return http.StatusText(response.StatusCode)
}
