package etcd

import (
	"net/netip"
	"strings"
)

// canonicalHost returns an IP address in canonical form, so that FD00:0:0::1 and fd00::1 are equal. It returns a name in
// lower case.
func canonicalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return strings.ToLower(host)
}
