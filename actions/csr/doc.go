// Package csr approves kubelets' requests for serving certificates. Whether a request
// fits was judged by what the journal knows; here everything is read live and judged
// again, before the step and right before the approval, which the API server takes only
// for the request as it was read.
package csr
