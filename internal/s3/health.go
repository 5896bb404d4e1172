package s3

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// DefaultHealthLimit is the default timeout of a health check.
const DefaultHealthLimit = 10 * time.Second

// Health is what a server reports about its store.
type Health struct {
	// Writable is set if enough drives work to write; with maintenance, if enough would work
	// without the server that was asked.
	Writable bool
	// Healing is how many drives are being restored, as far as that server knows.
	Healing int
	// WriteQuorum is how many drives a write needs.
	WriteQuorum int
	// Status is the HTTP status.
	Status int
}

// Health asks a server whether its store can be written to; with maintenance, whether it still
// could be without this server. It needs no credentials. An error means that there was no answer
// within the limit, and says nothing about the health.
func (c *Client) Health(ctx context.Context, maintenance bool, limit time.Duration) (Health, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	page := c.String() + "/minio/health/cluster"
	if maintenance {
		page += "?maintenance=true"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return Health{}, fmt.Errorf("ask %s for its health: %w", c, err)
	}
	response, err := c.caller().Do(request)
	if err != nil {
		return Health{}, fmt.Errorf("ask %s for its health: %w", c, err)
	}
	if err := response.Body.Close(); err != nil {
		return Health{}, fmt.Errorf("ask %s for its health: %w", c, err)
	}
	return Health{
		Writable: response.StatusCode == http.StatusOK,
		Healing:  number(response.Header, "X-Minio-Healing-Drives"), WriteQuorum: number(response.Header, "X-Minio-Write-Quorum"),
		Status: response.StatusCode,
	}, nil
}
