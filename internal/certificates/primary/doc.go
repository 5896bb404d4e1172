// Package primary renews the certificates of a primary's control plane, on the host where they
// are: those that kubeadm makes, by its rules.
//
// [Rotation] makes all of the new ones beside the old ones, and checks them there; then it puts
// away a dated copy of the old ones, and puts the new ones into their places. Components that
// must be restarted for that get another annotation in their manifest, which makes another pod
// of it for the kubelet; the manifest never leaves its directory. One that does not come back
// gets its old files and is restarted again, for which no API server is asked.
//
// A rotation is on record beside the dated copies while it is under way. Killed at any point,
// the next one finds there what the one before has changed, mends a pair of which only half was
// put into its place, and goes on.
//
// Not guaranteed: that who reads certificate and key at the very moment in which they are
// replaced has a pair. Two renames follow upon one another then; etcd and the API server read
// both again.
package primary
