// Package miniotest runs real MinIO servers on loopback for tests: one alone, or
// several that are one store. Each server is a process of its own and has an
// address of its own in 127.0.0.0/8, so that the port is 9000 as in a pod.
//
// The programs are built from the module in server/, which is no part of EKCO:
// MinIO's licence does not allow it, so EKCO only speaks to them over the network.
package miniotest
