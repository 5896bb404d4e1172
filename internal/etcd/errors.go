package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// endpointError adds the endpoint and the matching sentinel error to the error of a request.
func endpointError(endpoint string, err error) error {
	return fmt.Errorf("%s: %w: %s", endpoint, sentinel(err), reason(err))
}

func sentinel(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		return ErrNoMember
	case errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		return ErrUnhealthy
	case isAny(err, rpctypes.ErrNoLeader, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost):
		return ErrNoQuorum
	}
	return ErrUnavailable
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// reason returns the error's text without gRPC's framing.
func reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// joined joins the errors of all endpoints into one error of one line.
func joined(failures []error) error {
	all := failures[0]
	for _, failure := range failures[1:] {
		all = fmt.Errorf("%w; %w", all, failure)
	}
	return all
}

// withContextError adds the error of a context that has ended.
func withContextError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}
