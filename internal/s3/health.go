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
	// Writable is set if enough drives work to write. With maintenance, it is set if enough drives would work
	// without the queried server.
	Writable bool
	// Healing is the number of drives that are being restored, as far as the queried server knows.
	Healing int
	// WriteQuorum is the number of drives that a write needs.
	WriteQuorum int
	// Status is the HTTP status code.
	Status int
}

// Health asks a server whether its store is writable. With maintenance, it asks whether the store would be writable
// without this server. Health needs no credentials. An error means that there was no answer within the limit; it
// does not mean that the store is unhealthy.
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
	response, err := c.httpClient().Do(request)
	if err != nil {
		return Health{}, fmt.Errorf("ask %s for its health: %w", c, err)
	}
	if err := response.Body.Close(); err != nil {
		return Health{}, fmt.Errorf("ask %s for its health: %w", c, err)
	}
	return Health{
		Writable: response.StatusCode == http.StatusOK,
		Healing:  headerNumber(response.Header, "X-Minio-Healing-Drives"), WriteQuorum: headerNumber(response.Header, "X-Minio-Write-Quorum"),
		Status: response.StatusCode,
	}, nil
}
