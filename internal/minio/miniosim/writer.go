package miniosim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// Writer is an application that writes, overwrites and deletes objects all the time, through the Service. It keeps its
// connection until the server ends, even if the Service selects another server. It records acknowledged operations.
type Writer struct {
	both   *Both
	bucket string
	// has is the expected content by key.
	has map[string]string
	// to is the name of the pod of standalone MinIO to which the writer is connected, or "ha" for the highly
	// available MinIO, or empty.
	to string
	n  int

	// Outage is the longest time without a successful operation.
	Outage time.Duration
	last   time.Time
	stop   context.CancelFunc
	ended  chan struct{}
}

// Application starts a writer, which writes to a bucket at the interval until [Writer.Stop].
func (b *Both) Application(ctx context.Context, bucket string, every time.Duration) *Writer {
	ctx, stop := context.WithCancel(ctx)
	w := &Writer{both: b, bucket: bucket, has: map[string]string{}, last: time.Now(), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
				w.write()
			}
		}
	}()
	return w
}

// Stop ends the writer and waits for its end.
func (w *Writer) Stop() {
	w.stop()
	<-w.ended
}

// Wrote returns the number of acknowledged operations. Call it after Stop.
func (w *Writer) Wrote() int { return w.n }

// write does the next operation if the writer has a connection.
func (w *Writer) write() {
	store := w.connected()
	if store == nil {
		w.to = w.dial()
		if store = w.connected(); store == nil {
			w.Outage = max(w.Outage, time.Since(w.last))
			return
		}
	}
	key := fmt.Sprintf("object-%02d", w.n*7%23)
	if _, there := w.has[key]; there && w.n%5 == 0 {
		store.Delete(w.bucket, key, time.Now())
		delete(w.has, key)
	} else {
		content := fmt.Sprintf("content %d", w.n)
		store.Write(w.bucket, key, content, s3.Attributes{Headers: map[string]string{"Content-Type": "text/plain"}}, time.Now())
		w.has[key] = content
	}
	w.n, w.last = w.n+1, time.Now()
}

// connected returns the store at the other end of the connection, or nil if the connection is broken.
func (w *Writer) connected() *s3sim.Store {
	switch {
	case w.to == "":
	case w.to == "ha" && w.both.quorum():
		return w.both.target()
	case w.to == w.both.podName() && w.both.Object(minio.SinglePodRef(Namespace, w.to)) != nil:
		return w.both.source()
	}
	return nil
}

// dial returns the server at the other end of a new connection, as in Writer.to. A pod that ends accepts no connections.
func (w *Writer) dial() string {
	switch w.both.ServiceLeads() {
	case minio.App:
		return "ha"
	case "minio":
		if name := w.both.podName(); name != "" && !ends(w.both.Object(minio.SinglePodRef(Namespace, name))) {
			return name
		}
	}
	return ""
}

// Missing describes the differences between a store and the acknowledged operations, or returns "".
func (w *Writer) Missing(store *s3sim.Store) string {
	got, err := contents(store, w.bucket)
	if err != nil {
		return err.Error()
	}
	if maps.Equal(got, w.has) {
		return ""
	}
	text := ""
	for _, key := range slices.Sorted(maps.Keys(w.has)) {
		if got[key] != w.has[key] {
			text += fmt.Sprintf("%s is %q, want %q; ", key, got[key], w.has[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, there := w.has[key]; !there {
			text += fmt.Sprintf("%s is back with %q; ", key, got[key])
		}
	}
	return text
}

// contents returns the current objects of a bucket.
func contents(store *s3sim.Store, bucket string) (map[string]string, error) {
	got, seen := map[string]string{}, map[string]bool{}
	for v, err := range store.Versions(context.Background(), bucket, "") {
		if err != nil {
			return nil, err
		}
		if seen[v.Key] || v.DeleteMarker {
			seen[v.Key] = true
			continue
		}
		seen[v.Key] = true
		content, err := store.Open(context.Background(), bucket, v, 0, v.Size)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil {
			return nil, err
		}
		got[v.Key] = string(text)
	}
	return got, nil
}
