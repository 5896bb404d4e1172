package loadbalancer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Port is the port of HAProxy on every node.
const Port = 6444

// APIPort is the port of the API server on a primary.
const APIPort = 6443

// ErrNoPrimaries is the error for an empty list of primaries. HAProxy would accept the list, and the node would be cut
// off.
var ErrNoPrimaries = errors.New("no primaries to balance to")

// HAProxy logs to stdout. Level notice includes changes of the health of servers, but not each connection.
//
// Without a global maxconn, HAProxy 2.6 reserves memory for as many connections as it may open files: over
// 8 GB if the limit is 2^30, as under containerd. With "no strict-limits" it also starts if it may open fewer files than
// maxconn needs.
//
// HAProxy 2.9.1 used a whole core for zero-copy forwarding, so the configuration disables it. Versions before 2.9 do not
// know the option and would not start with it. The condition (.if) needs version 2.4.
//
// A watch may be silent for long, so idle connections stay open for a day.
const general = `# Written by ekco generate-haproxy-config.
global
    log stdout format raw local0 notice
    maxconn 20000
    no strict-limits
.if version_atleast(2.9)
    tune.disable-zero-copy-forwarding
.endif
    daemon

defaults
    mode tcp
    log global
    maxconn 20000
    option dontlognull
    retries 3
    timeout http-request 30s
    timeout queue 1m
    timeout connect 10s
    timeout client 86400s
    timeout server 86400s
    timeout tunnel 86400s

frontend kubernetes-api
`

// answers matches the HTTP statuses of a ready API server: 2xx, 401 or 403 if it refuses anonymous requests
// (--anonymous-auth=false), and 429 if it is busy.
var answers = regexp.MustCompile(`^(2..|401|403|429)$`)

// backend is the name of the backend, without the hash of the configuration.
const backend = "kubernetes-primaries"

// Backend returns the name of the backend in a configuration that [Config] returned. Each configuration has another
// name. The first line that HAProxy logs about a server's health, after every start and reload, contains the name. So
// the log shows which configuration HAProxy runs with.
func Backend(config string) string {
	_, rest, _ := strings.Cut(config, "default_backend ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

// renamed returns the configuration with another backend name, if the present file has the same name but other content
// because an administrator has changed it. Otherwise HAProxy's log would look the same with either file.
func renamed(config, present string) string {
	name := Backend(config)
	second := strings.ReplaceAll(config, name, name+"-2")
	if present == second || present != config && Backend(present) == name {
		return second
	}
	return config
}

// Layout returns an identifier of the format in which this version of EKCO writes configurations.
func Layout() string {
	config, err := Config([]string{"192.0.2.1", "2001:db8::1", "primary.example.com"})
	if err != nil {
		panic(err) // cannot happen: these primaries are valid
	}
	return strings.TrimPrefix(Backend(config), backend+"-")
}

// Config returns HAProxy's configuration for primaries in the given order. A primary is an IP address or a host name.
func Config(primaries []string) (string, error) {
	if len(primaries) == 0 {
		return "", ErrNoPrimaries
	}
	servers := make([]server, 0, len(primaries))
	var wrong []error
	for _, primary := range primaries {
		s, err := parseServer(primary)
		servers, wrong = append(servers, s), append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(general)
	for _, address := range listenOn(servers) {
		fmt.Fprintf(&out, "    bind %s\n", address)
	}
	out.WriteString(`    option tcplog
    default_backend ` + backend + `

backend ` + backend + `
    balance roundrobin
    option httpchk GET /readyz HTTP/1.0
    http-check expect rstatus ` + answers.String() + `
    option log-health-checks
`)
	for i, s := range servers {
		fmt.Fprintf(&out, "    server k8s-primary-%d %s:%d weight 1 verify none check check-ssl inter 1s fall 2 rise 3", i, s.host, APIPort)
		if s.named {
			// Without this, HAProxy would not start if it cannot resolve a name.
			out.WriteString(" init-addr libc,none")
		}
		out.WriteString("\n")
	}
	sum := sha256.Sum256([]byte(out.String()))
	return strings.ReplaceAll(out.String(), backend+"\n", fmt.Sprintf("%s-%x\n", backend, sum[:5])), nil
}

// listenOn returns the addresses to bind. It includes IPv6 only if a primary has an IPv6 address. HAProxy does not start
// if it cannot bind an address, for example if the kernel was booted without IPv6.
func listenOn(servers []server) []string {
	addresses := []string{fmt.Sprintf("0.0.0.0:%d", Port)}
	for _, s := range servers {
		if s.six {
			return append(addresses, fmt.Sprintf("[::]:%d v6only", Port))
		}
	}
	return addresses
}
