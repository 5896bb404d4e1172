// Package csr is the source of facts about kubelets' requests for serving certificates. It watches the requests, or
// polls them if EKCO may not watch. For requests without a decision it also reads the objects around them. It reads
// these again when such a request is created, and when a Node has changed; [Neighbours] sees that in the source of
// nodes. Without such requests there is only the watch.
//
// A client that may create requests can create thousands. So EKCO judges only the newest few requests of a requester,
// and a limited number in an hour. It records the rest as one subject. It also limits the records of changes of a
// Node's addresses.
package csr
