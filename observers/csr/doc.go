// Package csr is the source of facts about kubelets' requests for serving certificates. It watches the requests, or
// polls them if EKCO may not watch. While there are requests without a decision, it also reads the objects on which the
// decision depends, such as Nodes. It reads them again when such a request is created, and when a Node has changed;
// [Neighbours] notices that in the source of nodes. While there are none, EKCO only watches.
//
// A client that may create requests can create thousands. So EKCO judges only the newest few requests of a requester,
// and a limited number in an hour. It records the rest as one subject. It also limits the records of changes of a
// Node's addresses.
package csr
