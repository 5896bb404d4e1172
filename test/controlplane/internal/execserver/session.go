package execserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// idleTimeout ends connections without any traffic, as a kubelet does.
const idleTimeout = 4 * time.Hour

// sessions serves exec requests.
type sessions struct {
	api     kubernetes.Interface
	program string
	log     *slog.Logger
	running sync.WaitGroup
}

// container identifies the container in which a client wants to run a program.
type container struct {
	namespace, pod, name string
}

func (c container) String() string { return c.namespace + "/" + c.pod + "/" + c.name }

func (s *sessions) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.exec)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(http.StatusNotImplemented, "%s is not simulated; this server has only the kubelet's exec", r.URL.Path).write(w)
	})
	return mux
}

// wait waits until no request is running.
func (s *sessions) wait(timeout time.Duration) error {
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("exec sessions still run %s after their programs were killed", timeout)
	}
}

// exec serves one request from its admission to its end, and logs that.
func (s *sessions) exec(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	begin := time.Now()
	c := container{r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")}
	command := r.URL.Query()["command"]
	log := s.log.With("container", c, "command", command)
	options, err := s.accept(r, c)
	if err != nil {
		log.Info("exec refused", "because", err)
		refusalOf(err).write(w)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	s.running.Go(func() { s.guard(ctx, c, cancel) })
	e := &execution{program: s.program, container: c}
	defer e.wait() // the connection is already closed then
	err = e.serve(w, r.WithContext(ctx), options, command)
	log.Info("exec ended", "error", err, "after", time.Since(begin))
}

// accept returns an error unless the request can be served.
func (s *sessions) accept(r *http.Request, c container) (*remotecommand.Options, error) {
	if s.program == "" {
		return nil, refuse(http.StatusNotImplemented, "exec is not set up: start the control plane with 'controlplane up --exec-handler PROGRAM'")
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "cannot exec: %s", err)
	}
	if options.TTY {
		return nil, refuse(http.StatusBadRequest, "cannot exec with a terminal: it is not simulated")
	}
	return options, s.admit(r.Context(), c)
}

// serve uses the protocol that the client requested. It returns the program's error, or the reason why the program did
// not run.
func (e *execution) serve(w http.ResponseWriter, r *http.Request, o *remotecommand.Options, command []string) error {
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		return serveWebSocket(w, r, o, func(s streams) error { return e.run(r.Context(), command, s) })
	}
	executor := &executor{execution: e, err: errors.New("no streams were opened")}
	remotecommand.ServeExec(w, r, executor, e.container.pod, "", e.container.name, command, o,
		idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	return executor.err
}

// executor is a remotecommand.Executor that stores the result.
type executor struct {
	*execution
	err error
}

func (e *executor) ExecInContainer(ctx context.Context, _, _, _ string, command []string, stdin io.Reader, stdout, stderr io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	e.err = e.run(ctx, command, streams{stdin, stdout, stderr})
	return e.err
}
