// Package kubeconfig changes the server in kubeconfigs, and leaves all else in them as it is:
// comments, order and spacing too.
package kubeconfig
