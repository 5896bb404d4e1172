// Package csr is where facts of kubelets' requests for serving certificates come from:
// a watch of the requests, or a poll where watching is not permitted, and a look at what
// is around those that nobody has decided on. That is looked at anew when such a request
// comes, and when something has changed of a Node, which [Neighbours] sees at the source
// of those. While there is none, nothing is asked but the watch.
//
// Anybody who may create requests can create thousands. So of one requester only the
// newest few are looked at, and only so many in an hour; the rest is told of as one
// thing. Nor is the journal told each time that the addresses of its Node change.
package csr
