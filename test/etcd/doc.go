// Package etcdtest runs real etcd clusters on loopback for tests, with the same certificates, names, flags and ports as
// kubeadm. Each member is a separate process with its own address in 127.0.0.0/8, so that peer URLs are
// https://ADDRESS:2380 as on real primaries.
//
// The program is the binary of test/controlplane, which contains etcd.
package etcdtest
