// Package etcdtest runs real etcd clusters on loopback for tests, with the
// certificates, names, flags and ports that kubeadm gives them. Each member is a
// process of its own and has an address of its own in 127.0.0.0/8, so that peer
// URLs are https://ADDRESS:2380 as on real primaries.
//
// The program is the one of test/controlplane, which has etcd inside.
package etcdtest
