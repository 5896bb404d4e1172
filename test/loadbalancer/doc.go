// Package loadbalancertest has real HAProxies for tests: Debian's 2.6 and 3.0, unpacked and not
// installed (install.sh, which needs root). The tests here have them judge every configuration
// that EKCO's tests generate, serve by one, and reload it as in their container.
package loadbalancertest
