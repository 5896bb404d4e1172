// Package e2e tests the ekco binary as it ships against a real Kubernetes
// control plane (test/controlplane) on loopback. The tests drive both from
// outside, as an administrator and a failing machine would: commands, signals,
// and a proxy in front of the API server that can hold a request so that EKCO
// is killed at a known place.
package e2e
