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

// Writer is an application that writes, overwrites and deletes objects all the time,
// through the Service, on a connection that lives as long as what it leads to, wherever the
// Service leads meanwhile. It keeps what was acknowledged.
type Writer struct {
	both   *Both
	bucket string
	// has is what must be there in the end.
	has map[string]string
	// to is the pod of the single one that it is connected to, "ha" for the other, empty
	// for none.
	to string
	n  int

	// Outage is the longest time in which nothing could be written.
	Outage time.Duration
	last   time.Time
	stop   context.CancelFunc
	ended  chan struct{}
}

// Application begins to write to a bucket, so often, until [Writer.Stop].
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

// Stop ends it.
func (w *Writer) Stop() {
	w.stop()
	<-w.ended
}

// Wrote returns how many operations were acknowledged, once it has ended.
func (w *Writer) Wrote() int { return w.n }

// write does the next operation, if it can.
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

// connected returns what the connection leads to, nil if it is broken.
func (w *Writer) connected() *s3sim.Store {
	switch {
	case w.to == "":
	case w.to == "ha" && w.both.quorum():
		return w.both.Target
	case w.to == w.both.podName() && w.both.Object(minio.SinglePodRef(Namespace, w.to)) != nil:
		return w.both.source()
	}
	return nil
}

// dial returns what a new connection leads to: a pod that ends gets none.
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

// Missing says what of the acknowledged is not as it should be in a store, "" for nothing.
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

// contents returns what readers of a bucket are given.
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
