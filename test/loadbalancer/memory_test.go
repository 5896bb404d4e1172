package loadbalancertest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// limited runs a program with a limit of open files. "most" is the highest limit that can be set here.
const limited = `
limit=$1
shift
[ "$limit" != most ] || limit=$(cat /proc/sys/fs/nr_open)
ulimit -n "$limit" 2>/dev/null || ulimit -n "$(ulimit -H -n)"
exec "$@"`

// sockets returns for how many open files HAProxy reserves memory, with that limit of open files.
func sockets(t *testing.T, haproxy loadbalancertest.HAProxy, config, limit string) int {
	t.Helper()
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "haproxy.cfg")
	config = strings.Replace(config, "global\n", "global\n    stats socket "+socket+"\n", 1)
	config = strings.ReplaceAll(config, fmt.Sprint(":", loadbalancer.Port), fmt.Sprint(":", freePort(t)))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process := child.Start(t, "sh", "-c", limited, "sh", limit, haproxy.Path, "-db", "-f", file)
	defer process.Kill()
	var info string
	await.Until(t, await.HangTimeout, "HAProxy answers with a limit of "+limit+" files", func() (bool, string) {
		var err error
		if info, err = showInfo(t, socket); err != nil {
			return false, fmt.Sprint(err, " ", process.Output.Tail(500))
		}
		return true, ""
	})
	found := regexp.MustCompile(`(?m)^Maxsock: (\d+)$`).FindStringSubmatch(info)
	if found == nil {
		t.Fatalf("HAProxy says %s", info)
	}
	count, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func showInfo(t *testing.T, socket string) (string, error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show info\n"); err != nil {
		return "", err
	}
	info, err := io.ReadAll(conn)
	return string(info), err
}

// TestMemoryDoesNotGrowWithTheFileLimit: with a limit of 2^30 open files, HAProxy 2.6 wanted over 8 GB, and did not
// start. Here the limit may be lower, so the test also shows that without the global maxconn, HAProxy reserves
// memory for as many files as it may open.
func TestMemoryDoesNotGrowWithTheFileLimit(t *testing.T) {
	t.Parallel()
	config, err := loadbalancer.Config([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	haproxy := haproxies[0]
	if few, most := sockets(t, haproxy, config, "1024"), sockets(t, haproxy, config, "most"); few != most {
		t.Errorf("it reserves memory for %d open files, and with a higher limit for %d", few, most)
	}
	without := strings.Replace(config, "    maxconn 20000\n", "", 1)
	if few, more := sockets(t, haproxy, without, "1024"), sockets(t, haproxy, without, "8192"); few > 1024 || more < 4096 {
		t.Errorf("without a global maxconn, it reserves memory for %d open files of 1024, and for %d of 8192", few, more)
	}
}
