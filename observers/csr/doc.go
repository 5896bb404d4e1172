// Package csr is the source of facts about kubelets' requests for serving certificates: a watch of the requests, or a
// poll if EKCO may not watch, and a read of the cluster around those without a decision. It reads that again when
// such a request is created, and when a Node has changed, which [Neighbours] sees at the source of nodes. Without
// such requests, there is only the watch.
//
// A client that may create requests can create thousands. So EKCO judges only the newest few of one requester, and
// only a number in an hour; the rest is recorded as one thing. Frequent changes of its Node's addresses are not all
// recorded either.
package csr
