package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/replicatedhq/ekco/journal"
)

var errIncompleteStream = errors.New("the operator ended the stream")

// Events implements [Backend]. If the operator ends a stream because the client reads too slowly, the client continues
// with another request.
func (c *Client) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		s := &stream{client: c, query: query, left: query.Limit, last: query.After}
		if !s.run(ctx, false, yield) || !follow {
			return
		}
		// Use two requests, because the operator sends a history in large pieces but live events at once.
		s.query.Limit, s.left, s.query.Reverse = 0, 0, false
		s.query.Before = 0
		s.query.After = s.last
		s.run(ctx, true, yield)
	}
}

// stream is the state of one sequence of events.
type stream struct {
	client *Client
	query  journal.Query
	left   int
	last   uint64
}

// run yields the events of the query. After an incomplete answer, it requests the rest of the query, unless that answer
// had no event. It returns false if the caller must stop.
func (s *stream) run(ctx context.Context, follow bool, yield func(journal.Event, error) bool) bool {
	for {
		s.query.Limit = s.left
		progressed, ended := false, false
		err := s.client.readLines(ctx, eventsRequest{Query: s.query, Follow: follow}, func(event journal.Event) bool {
			progressed = true
			s.advance(event)
			ended = !yield(event, nil)
			return !ended
		})
		switch {
		case ended:
			return false
		case err == nil:
			return true
		case follow && ctx.Err() != nil:
			return false
		case errors.Is(err, errIncompleteStream) && progressed && ctx.Err() == nil:
			if s.query.Limit > 0 && s.left == 0 {
				return true
			}
		default:
			yield(journal.Event{}, err)
			return false
		}
	}
}

// advance moves the query past the event.
func (s *stream) advance(event journal.Event) {
	s.last = max(s.last, event.Seq)
	if s.query.Reverse {
		s.query.Before = event.Seq
	} else {
		s.query.After = event.Seq
	}
	if s.left > 0 {
		s.left--
	}
}

// readLines reads one answer to Events. It returns errIncompleteStream if the answer is incomplete.
func (c *Client) readLines(ctx context.Context, request eventsRequest, take func(journal.Event) bool) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.post(ctx, pathEvents, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	for {
		var line eventLine
		err := decoder.Decode(&line)
		switch {
		case err != nil:
			return fmt.Errorf("read events: %w: %w", withoutAddress(err), errIncompleteStream)
		case line.Error != nil:
			return line.Error.err()
		case line.End:
			return nil
		case line.Event == nil:
			return fmt.Errorf("read events: a line holds neither an event nor the end: %w", ErrInvalid)
		case !take(*line.Event):
			return nil
		}
	}
}

// Export implements [Backend].
func (c *Client) Export(ctx context.Context, w io.Writer, query journal.Query) error {
	body, err := json.Marshal(query)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	response, err := c.post(ctx, pathExport, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		var out answer[nothing]
		if err := json.NewDecoder(response.Body).Decode(&out); err != nil || out.Error == nil {
			return fmt.Errorf("export: the operator answered %s", response.Status)
		}
		return out.Error.err()
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("export: %w", lostAnswer(err))
	}
	switch outcome := response.Trailer.Get(outcomeTrailer); outcome {
	case "ok":
		return nil
	case "":
		return fmt.Errorf("export: %w", errIncompleteStream)
	default:
		var wire wireError
		if err := json.Unmarshal([]byte(outcome), &wire); err != nil {
			return fmt.Errorf("export failed: %s", outcome)
		}
		return wire.err()
	}
}
