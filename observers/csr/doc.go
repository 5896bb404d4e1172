// Package csr is the source of facts about kubelets' requests for serving certificates. It watches the requests, or
// polls them if EKCO may not watch. While there are requests without a decision, it also reads the objects on which the
// decision depends, such as Nodes. It reads these again when such a request is created, and when [Neighbours] reports a
// change of a Node. While all requests are decided, it only watches.
//
// A client that may create requests can create thousands. So EKCO judges only the newest few requests of a requester,
// and a limited number in an hour. It records the rest as one subject. Records of changes of a Node's addresses are
// limited too.
package csr
