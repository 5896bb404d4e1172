// Package csr is the client for kubelets' requests for serving certificates: CertificateSigningRequests of one
// signer. [Parse] reduces a request, which may contain anything, to what is judged. A [Client] lists and watches
// requests, reads what is around them (their Nodes, other nodes, the identities of the cluster), and approves them.
// It does not decide what may be approved.
package csr
