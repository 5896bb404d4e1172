// Package miniotest runs real MinIO servers on loopback for tests: a single one, or several that form one store. Each
// server is a separate process with its own address in 127.0.0.0/8, so that the port is 9000 as in a pod.
//
// The programs are built from the module in server/, which is no part of EKCO:
// MinIO's licence does not allow it, so EKCO only speaks to them over the network.
package miniotest
