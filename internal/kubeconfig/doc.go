// Package kubeconfig changes the server in kubeconfigs, and keeps everything else: also comments, order and
// spacing.
package kubeconfig
