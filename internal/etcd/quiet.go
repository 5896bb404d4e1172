package etcd

import (
	"io"
	"os"

	"google.golang.org/grpc/grpclog"
)

// gRPC's logger is global, and a program may only set it before the first connection.
func init() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" && os.Getenv("ETCD_CLIENT_DEBUG") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}
