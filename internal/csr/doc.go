// Package csr is the client for kubelets' requests for serving certificates: CertificateSigningRequests of one signer.
// [Parse] reduces a request, which may contain anything, to the parts on which the decision depends. A [Client] lists
// and watches requests, reads the other facts for the decision (the requester's Node, other nodes, the identities of
// the cluster), and approves requests. It does not decide what may be approved.
package csr
