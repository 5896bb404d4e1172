package loadbalancer

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// maxName is the maximum length of a host name.
const maxName = 253

var (
	// label matches the text between two dots of a host name.
	label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	// number matches a text that the C library reads as a part of an IPv4 address.
	number = regexp.MustCompile(`^([0-9]+|0[xX][0-9A-Fa-f]*)$`)
)

// server is a primary in HAProxy's configuration.
type server struct {
	// host is the host in the configuration, without the port.
	host  string
	named bool
	six   bool
}

// CheckPrimary returns an error unless primary can be the address or name of a host.
func CheckPrimary(primary string) error {
	_, err := parseServer(primary)
	return err
}

// parseServer parses an address or a name. It refuses all other text, because a space or a line break would inject
// settings into the configuration.
func parseServer(primary string) (server, error) {
	if isName(primary) {
		return server{host: primary, named: true}, nil
	}
	text, bracketed := primary, strings.HasPrefix(primary, "[") && strings.HasSuffix(primary, "]")
	if bracketed {
		text = primary[1 : len(primary)-1]
	}
	address, err := netip.ParseAddr(text)
	switch {
	case err != nil || address.Zone() != "" || bracketed && !address.Is6():
		return server{}, fmt.Errorf("primary %q is neither an IP address nor the name of a host, without a port: want for example 10.0.0.1, fd00::1 or primary-1.example.com", primary)
	case address.Unmap().IsUnspecified() || address.Unmap().IsMulticast():
		return server{}, fmt.Errorf("primary %q is an address that no single host has", primary)
	}
	address = address.Unmap()
	if address.Is6() {
		return server{host: "[" + address.String() + "]", six: true}, nil
	}
	return server{host: address.String()}, nil
}

// isName reports whether text is the name of a host.
func isName(text string) bool {
	if len(text) > maxName {
		return false
	}
	labels := strings.Split(text, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return false
		}
	}
	return !number.MatchString(labels[len(labels)-1])
}
