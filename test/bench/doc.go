// Package bench measures the ekco binary as it ships, from outside: against a
// real Kubernetes control plane (test/controlplane) with 1,000 and 5,000
// simulated nodes, with a real Ceph and real etcd members, and on a journal of a
// million events. Its figures are in docs/performance.md.
//
// Each benchmark reports its figures with b.ReportMetric; ns/op is of no
// interest. Everything listens on loopback, and every process ends with its
// benchmark. The environment variable EKCO_BINARY names the binary to measure;
// by default it is that of "make build".
package bench
