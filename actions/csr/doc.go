// Package csr approves kubelets' requests for serving certificates. Its machine in package fsm judges a request by the
// facts in the journal. This package judges it again by live facts, before the step and right before the approval. The
// API server accepts the approval only if the request has not changed since it was read.
package csr
