// Package loadbalancertest provides real HAProxies for tests: Debian's 2.6 and 3.0, which are unpacked but not
// installed (install.sh, which needs root). The tests in this package let them check every configuration that EKCO's
// tests generate, serve with one, and reload it as in its container.
package loadbalancertest
