package kubeconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// plainURL matches addresses that, except for brackets, need no quotes in YAML and no escapes in quotes.
var plainURL = regexp.MustCompile(`^https://[A-Za-z0-9._~%:\[\]/-]+$`)

// CheckServer returns an error unless server can be the address of an API server.
func CheckServer(server string) error {
	if why := wrong(server); why != "" {
		return fmt.Errorf("invalid server %q: %s; want for example https://localhost:6444 or https://lb.example.com", Redacted(server), why)
	}
	return nil
}

// wrong returns the reason why an address is invalid, or "".
func wrong(server string) string {
	scheme, _, has := strings.Cut(server, "://")
	switch {
	case !has:
		return "it has no scheme"
	case scheme != "https": // http does not authenticate the server, and sends a token in plain text
		return "its scheme is not https"
	}
	parsed, err := url.Parse(server)
	if err != nil {
		return "it is not a URL"
	}
	host, port := parsed.Hostname(), parsed.Port()
	switch {
	case host == "":
		return "it has no host"
	case !plainURL.MatchString(server):
		return "it has more than a host, a port and a path"
	case strings.Contains(host, ":") && !isIPv6(host):
		return "its host is not an address"
	case strings.HasSuffix(parsed.Host, ":"):
		return "its port is missing"
	}
	if number, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || number == 0) {
		return "its port is invalid"
	}
	return ""
}

func isIPv6(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Is6() && address.Zone() == ""
}

// Redacted returns an address without its user, password and query. Everything before the last "@" is removed,
// since the address may be no valid URL.
func Redacted(server string) string {
	if query := strings.IndexAny(server, "?#"); query > strings.LastIndexByte(server, '@') {
		server = server[:query+1] + "REDACTED"
	}
	at := strings.LastIndexByte(server, '@')
	if at < 0 {
		return server
	}
	scheme, _, has := strings.Cut(server[:at], "://")
	if !has {
		return "REDACTED" + server[at:]
	}
	return scheme + "://REDACTED" + server[at:]
}
