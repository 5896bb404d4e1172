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

// The credentials of every store's root user.
const (
	AccessKey = "kurl"
	SecretKey = "k7Gq2wXzP"
)

// limit is how long a store may take to be healthy. Usually it is some seconds.
const limit = 5 * time.Minute

// Store is an object store of one or more servers that ends with its test.
type Store struct {
	t       testing.TB
	program string
	env     []string
	servers []*server
}

// server is one of the processes of a store. Its data outlives it.
type server struct {
	address, dir string
	process      *child.Process
}

// Start starts a store of so many servers and returns when it is healthy. env are
// more variables, as NAME=VALUE, in their environment.
func Start(t testing.TB, programs Programs, servers int, env ...string) *Store {
	t.Helper()
	return StartAt(t, programs, Addresses(servers), env...)
}

// Addresses are some for so many servers, as HOST:PORT.
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

// Run starts a server that does not run. It does not wait for it.
func (s *Store) Run(id int) {
	s.t.Helper()
	one := s.servers[id]
	env := append([]string{
		"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey,
		"MINIO_UPDATE=off", "MINIO_BROWSER=off", "HOME=" + filepath.Dir(one.dir),
		// Or the servers refuse directories of one disk as disks.
		"MINIO_CI_CD=1",
		// Or each waits for ever for who among them it is: all are on this machine.
		"_MINIO_SERVER_LOCAL=" + one.address,
	}, s.env...)
	args := append([]string{"server", "--quiet", "--address", one.address}, s.volumes()...)
	one.process = child.StartWith(s.t, env, s.program, args...)
}

// volumes are what each server is told of all of them.
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

// Kill ends servers as a power cut would.
func (s *Store) Kill(ids ...int) {
	for _, id := range ids {
		s.servers[id].process.Kill()
	}
}

// Stop ends servers as the deletion of their pods would.
func (s *Store) Stop(ids ...int) {
	s.t.Helper()
	for _, id := range ids {
		s.servers[id].process.Stop(limit)
	}
}

// Running reports whether a server runs.
func (s *Store) Running(id int) bool { return s.servers[id].process.Running() }

// Address is where a server listens, as HOST:PORT.
func (s *Store) Address(id int) string { return s.servers[id].address }

// Directory is where a server keeps its data.
func (s *Store) Directory(id int) string { return s.servers[id].dir }

// URL is the URL of the first server that runs.
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

// WaitHealthy returns when every server that runs says that the store can be
// written to.
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

// health is what a server says of the whole store.
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
