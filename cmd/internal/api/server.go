package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/serving"
)

// Serve serves the backend on a listener from [Listen] until ctx ends, and closes the listener. It then ends all
// streams, and gives other calls [serving.StopTimeout] to end.
func Serve(ctx context.Context, listener net.Listener, backend Backend, log *slog.Logger) error {
	s := &server{backend: backend, log: log, host: hostName(), stopping: ctx, timeout: writeTimeout}
	return s.serve(ctx, listener)
}

func (s *server) serve(ctx context.Context, listener net.Listener) error {
	httpServer := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return serving.Until(ctx, httpServer, listener)
}

type server struct {
	backend Backend
	log     *slog.Logger
	host    string
	// stopping ends when the server stops. It ends the streams.
	stopping context.Context
	// timeout is how long a write waits for a peer that does not read.
	timeout   time.Duration
	followers followers
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, handler http.HandlerFunc) { mux.Handle("POST "+path, s.guard(handler)) }
	handle(pathPing, call(func(context.Context, nothing, string) (nothing, error) { return nothing{}, nil }, s))
	handle(pathStatus, call(func(ctx context.Context, _ nothing, _ string) (Status, error) { return s.backend.Status(ctx) }, s))
	handle(pathVerify, call(func(ctx context.Context, _ nothing, _ string) (VerifyResult, error) { return s.backend.Verify(ctx) }, s))
	handle(pathThing, call(func(ctx context.Context, in ThingRequest, _ string) ([]ThingExplanation, error) {
		return s.backend.ExplainThing(ctx, in)
	}, s))
	handle(pathExplain, withActor(s, s.backend.Explain))
	handle(pathRequest, withActor(s, s.backend.Request))
	handle(command[PauseRequest](s))
	handle(command[ResumeRequest](s))
	handle(command[RetryRequest](s))
	handle(command[CancelRequest](s))
	handle(command[AcceptRequest](s))
	handle(pathEvents, s.events)
	handle(pathExport, s.export)
	handle(pathImport, s.importEvents)
	return mux
}

// guard admits only root and EKCO's own user.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(peerKey{}).(peer)
		if err := who.requireAllowed(); err != nil {
			s.log.Warn("refused a call on the socket", "path", r.URL.Path, "uid", who.uid, "pid", who.pid, "error", err)
			s.fail(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withActor adapts a method with an actor in its request. It sets the peer as the actor, and ignores the request's own
// value.
func withActor[Out any](s *server, do func(context.Context, fsm.Request) (Out, error)) http.HandlerFunc {
	return call(func(ctx context.Context, in fsm.Request, actor string) (Out, error) {
		in.Actor = actor
		return do(ctx, in)
	}, s)
}

// command returns the path and the handler of a command. Like [withActor], the handler sets the peer as the actor.
func command[C Command](s *server) (string, http.HandlerFunc) {
	return (*new(C)).path(), call(func(ctx context.Context, in C, actor string) (nothing, error) {
		return nothing{}, s.backend.Do(ctx, in.By(actor))
	}, s)
}

// call adapts a backend's method to HTTP.
func call[In, Out any](do func(ctx context.Context, in In, actor string) (Out, error), s *server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := s.decode(w, r, &in); err != nil {
			s.fail(w, err)
			return
		}
		out, err := do(r.Context(), in, s.actor(r))
		if err != nil {
			s.fail(w, err)
			return
		}
		s.reply(w, http.StatusOK, answer[Out]{Value: out})
	}
}

func (s *server) actor(r *http.Request) string {
	who, _ := r.Context().Value(peerKey{}).(peer)
	return who.actor(s.host, r.Header.Get(sudoHeader))
}

// decode reads the whole body as one JSON object.
func (s *server) decode(w http.ResponseWriter, r *http.Request, into any) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return fmt.Errorf("set the deadline for reading the request: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return fmt.Errorf("read the request: %w: %w", err, ErrInvalid)
	}
	// The server continues to read, in order to notice a closed connection.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("clear the deadline for reading the request: %w", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the request: %w: %w", err, ErrInvalid)
	}
	return nil
}

func (s *server) fail(w http.ResponseWriter, err error) {
	s.reply(w, statusOf(err), answer[*nothing]{Error: toWire(err)})
}

func (s *server) reply(w http.ResponseWriter, status int, body any) {
	content, err := json.Marshal(body)
	if err != nil {
		status = http.StatusInternalServerError
		content = []byte(`{"error":{"message":"the answer cannot be written as JSON"}}`)
		s.log.Error("cannot encode an answer", "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := s.withTimeout(w).Write(content); err != nil {
		s.log.Debug("the client closed the connection before the answer", "error", err)
	}
}
