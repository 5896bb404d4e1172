// Package primary renews the certificates of a primary's control plane on its host. It renews the certificates that
// kubeadm creates, by kubeadm's rules.
//
// [Rotation] writes all new certificates next to the old files, and checks them. Then it copies the old files to a dated
// directory, and replaces them. To restart a component, it changes an annotation in the component's manifest, so that
// the kubelet creates another pod. If a component does not work after its restart, Rotation restores its old files and
// restarts it again. All this needs no API server.
//
// A rotation writes a record next to the dated copies. If a rotation is killed, the next rotation reads the record,
// restores each pair of which only one file was replaced, and continues.
//
// Not guaranteed: a program that reads certificate and key during their replacement may get a pair that does not match.
// The two renames follow each other directly, and etcd and the API server read both files again.
package primary
