package miniotest_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

func TestASilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	client, err := s3.NewClient(s3.Endpoint{Address: silent(t)}, s3.Options{Stall: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	began := time.Now()
	if _, err := client.Server(t.Context()); err == nil || time.Since(began) >= s3.DefaultStall {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
