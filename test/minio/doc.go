// Package miniotest runs real MinIO servers on loopback for tests: one server, or several that form one store. Each
// server is a separate process with its own address in 127.0.0.0/8, so that the port is 9000 as in a pod.
//
// The programs are built from the module in server/, which is not part of EKCO: MinIO's licence does not allow that.
// EKCO only talks to the programs over the network.
package miniotest
