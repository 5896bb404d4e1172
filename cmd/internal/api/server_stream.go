package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// timeoutWriter writes to the connection, with a timeout for a peer that does not read.
type timeoutWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (s *server) withTimeout(w http.ResponseWriter) *timeoutWriter {
	return &timeoutWriter{w: w, control: http.NewResponseController(w), timeout: s.timeout}
}

func (p *timeoutWriter) Write(content []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(p.timeout)); err != nil {
		return 0, err
	}
	n, err := p.w.Write(content)
	if err != nil {
		return n, err
	}
	return n, p.control.Flush()
}

// streaming returns a context that ends with the request, with the server, and when end is called.
func (s *server) streaming(r *http.Request) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.stopping, cancel) //nolint:contextcheck // a stream also ends with the server
	return ctx, func() {
		stop()
		cancel()
	}
}

// events streams events, one per line.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	var request eventsRequest
	if err := s.decode(w, r, &request); err != nil {
		s.fail(w, err)
		return
	}
	ctx, end := s.streaming(r)
	defer end()
	if request.Follow {
		var leave func()
		ctx, leave = s.followers.enter(ctx, request.Query.Action, s.openActions)
		defer leave()
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	direct := s.withTimeout(w)
	if _, err := direct.Write(nil); err != nil {
		return
	}
	buffered := bufio.NewWriterSize(direct, 64<<10)
	lines := json.NewEncoder(buffered)
	for event, err := range s.backend.Events(ctx, request.Query, request.Follow) {
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if lines.Encode(eventLine{Error: toWire(err)}) == nil {
				_ = buffered.Flush()
			}
			return
		}
		if lines.Encode(eventLine{Event: &event}) != nil {
			return
		}
		// Send live events at once, but a history in large pieces.
		if request.Follow && buffered.Flush() != nil {
			return
		}
	}
	if crowded := context.Cause(ctx); errors.Is(crowded, ErrCrowded) {
		if lines.Encode(eventLine{Error: toWire(crowded)}) == nil {
			_ = buffered.Flush()
		}
		return
	}
	if ctx.Err() != nil {
		// The stream is incomplete, so the client must not see a regular end.
		_ = buffered.Flush()
		panic(http.ErrAbortHandler)
	}
	if lines.Encode(eventLine{End: true}) == nil {
		_ = buffered.Flush()
	}
}

// export streams gzip-compressed NDJSON, and sends the outcome in a trailer.
func (s *server) export(w http.ResponseWriter, r *http.Request) {
	var query journal.Query
	if err := s.decode(w, r, &query); err != nil {
		s.fail(w, err)
		return
	}
	ctx, end := s.streaming(r)
	defer end()
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Trailer", outcomeTrailer)
	w.WriteHeader(http.StatusOK)
	direct := s.withTimeout(w)
	out := bufio.NewWriterSize(direct, 64<<10)
	err := s.backend.Export(ctx, out, query)
	if flushErr := out.Flush(); err == nil && flushErr != nil {
		return
	}
	outcome := "ok"
	if err != nil {
		encoded, marshalErr := json.Marshal(toWire(err))
		if marshalErr != nil {
			encoded = []byte(`{"message":"export failed"}`)
		}
		outcome = string(encoded)
	}
	w.Header().Set(outcomeTrailer, outcome)
	if _, err := direct.Write(nil); err != nil {
		s.log.Debug("the client closed the connection before the end of the export", "error", err)
	}
}

// importEvents reads gzip-compressed NDJSON.
func (s *server) importEvents(w http.ResponseWriter, r *http.Request) {
	ctx, end := s.streaming(r)
	defer end()
	body := &timeoutReader{r: http.MaxBytesReader(w, r.Body, maxImport), control: http.NewResponseController(w)}
	imported, err := s.backend.Import(ctx, r.URL.Query().Get(importedFrom), body)
	if err != nil {
		s.fail(w, fmt.Errorf("import: %w", err))
		return
	}
	s.reply(w, http.StatusOK, answer[journal.JournalImported]{Value: imported})
}

// timeoutReader reads with a timeout for a peer that does not send.
type timeoutReader struct {
	r       io.Reader
	control *http.ResponseController
}

func (p *timeoutReader) Read(into []byte) (int, error) {
	if err := p.control.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return 0, err
	}
	n, err := p.r.Read(into)
	if err != nil {
		// EKCO writes the imported events after this, without a timeout.
		if lift := p.control.SetReadDeadline(time.Time{}); lift != nil {
			return n, lift
		}
	}
	return n, err
}
