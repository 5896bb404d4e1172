// Package primary renews the certificates of a primary's control plane on its host: those that kubeadm creates, by
// its rules.
//
// [Rotation] creates all new certificates next to the old ones, and checks them there. Then it copies the old files
// to a dated directory, and replaces them. For components that must be restarted, it changes an annotation in their
// manifest, so that the kubelet creates another pod; the manifest never leaves its directory. A component that does
// not come back gets its old files and is restarted again. That needs no API server.
//
// A rotation keeps a record next to the dated copies. If it is killed at any point, the next one reads there what
// was changed, restores a pair of which only one file was replaced, and continues.
//
// Not guaranteed: that a program which reads certificate and key while they are replaced gets a matching pair. The
// two renames follow each other directly, and etcd and the API server read both files again.
package primary
