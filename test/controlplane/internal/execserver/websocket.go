package execserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

// statusTimeout is how long a client may take to read the program's exit status.
const statusTimeout = 10 * time.Second

// serveWebSocket serves protocol v5 over a WebSocket. Present clients use it, but remotecommand.ServeExec does not
// support it. A kubelet translates it to SPDY for the container runtime; this server needs no translation.
func serveWebSocket(w http.ResponseWriter, r *http.Request, o *remotecommand.Options, run func(streams) error) error {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: channels(o)},
	})
	conn.SetIdleTimeout(idleTimeout)
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return fmt.Errorf("cannot open a WebSocket: %w", err)
	}
	defer func() { _ = conn.Close() }()
	// An empty message tells the client that the connection works.
	if _, err := channels[remotecommand.StreamErr].Write(nil); err != nil {
		return fmt.Errorf("cannot write to the client: %w", err)
	}
	var s streams
	if o.Stdin {
		s.stdin = channels[remotecommand.StreamStdIn]
	}
	if o.Stdout {
		s.stdout = channels[remotecommand.StreamStdOut]
	}
	if o.Stderr {
		s.stderr = channels[remotecommand.StreamStdErr]
	}
	err = run(s)
	if errors.Is(err, errClientGone) {
		return err
	}
	conn.SetWriteDeadline(statusTimeout)
	return errors.Join(err, writeStatus(channels[remotecommand.StreamErr], err))
}

// channels are the directions of the channels, by their numbers.
func channels(o *remotecommand.Options) []wsstream.ChannelType {
	list := make([]wsstream.ChannelType, remotecommand.StreamResize+1)
	for i := range list {
		list[i] = wsstream.IgnoreChannel
	}
	list[remotecommand.StreamErr] = wsstream.WriteChannel
	if o.Stdin {
		list[remotecommand.StreamStdIn] = wsstream.ReadChannel
	}
	if o.Stdout {
		list[remotecommand.StreamStdOut] = wsstream.WriteChannel
	}
	if o.Stderr {
		list[remotecommand.StreamStdErr] = wsstream.WriteChannel
	}
	return list
}

// writeStatus sends the program's exit status to the client.
func writeStatus(to io.Writer, err error) error {
	status := metav1.Status{Status: metav1.StatusSuccess}
	var exit utilexec.CodeExitError
	switch {
	case errors.As(err, &exit):
		status = metav1.Status{
			Status: metav1.StatusFailure, Message: "command terminated with non-zero exit code: " + err.Error(),
			Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.Code)},
			}},
		}
	case err != nil:
		status = metav1.Status{
			Status: metav1.StatusFailure, Message: err.Error(),
			Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		}
	}
	data, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("cannot encode the status for the client: %w", err)
	}
	if _, err := to.Write(data); err != nil {
		return fmt.Errorf("cannot send the exit status to the client: %w", err)
	}
	return nil
}
