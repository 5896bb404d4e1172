package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// These limit the memory for requests that are read at the same time: 8 MiB for small ones, and about three times
// maxBody for a large one.
const (
	// maxBody is the limit of controller-runtime's webhook server. An API server accepts objects up to 3 MiB, and a
	// request has the object and the former object.
	maxBody   = 7 << 20
	smallBody = 256 << 10
	maxSmall  = 32
	maxLarge  = 1
	// maxValues limits the values in a request, because a value can take more memory than its text.
	maxValues = 100_000

	// API servers send a request at once. Together, these are less than the time limit of the webhook.
	slotTimeout = 2 * time.Second
	bodyTimeout = 3 * time.Second
)

// bodies reads the bodies of a limited number of requests at a time.
type bodies struct{ small, large chan struct{} }

func newBodies() *bodies {
	return &bodies{small: make(chan struct{}, maxSmall), large: make(chan struct{}, maxLarge)}
}

// read reads the body of a request. The caller must call release when it no longer needs the body.
func (b *bodies) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	slots := b.large
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		slots = b.small
	}
	ctx, cancel := context.WithTimeout(r.Context(), slotTimeout)
	defer cancel()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, errors.New("read the request: too many requests at the same time")
	}
	release = func() { <-slots }
	body, err = readBody(w, r)
	if err != nil {
		release()
		return nil, nil, err
	}
	return body, release, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return nil, fmt.Errorf("limit the time to read the request: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if values := bytes.Count(body, []byte(",")); values > maxValues {
		return nil, fmt.Errorf("read the request: it has more than %d values", maxValues)
	}
	return body, nil
}
