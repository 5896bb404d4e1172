// Package csrsim simulates a cluster in which kubelets request serving certificates, for tests. It keeps
// requests, and what is around them, in memory.
package csrsim
